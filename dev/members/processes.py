"""The processes of a cluster. Each process and its children have the cluster's directory and the member's name in their
environment. So no pid has to be stored, and none can be mistaken for another process after a restart of the machine."""
import collections
import os
import pwd
import signal
import subprocess
import time

OF, NAME = "TWOEFAY_CLUSTER", "TWOEFAY_MEMBER"
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin:/bin"


class Family:
    """A member's process and its children. A child may outlive it briefly, such as a copy of a node."""

    def __init__(self):
        self.states, self.head = {}, None

    @property
    def lives(self):
        return self.head is not None

    @property
    def is_frozen(self):
        return self.lives and self.states[self.head] == "T"

    def send(self, number):
        for pid in self.states:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass


def start(place, name, arguments, user=None, **environment):
    """Starts a process in its own session, so that Ctrl-C does not reach it. Its output goes to log/NAME.log."""
    with open(place.at("log", f"{name}.log"), "ab") as log:
        child = subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/",
            env=_environment(**{OF: place.path, NAME: name}, **environment), **_as(user))
    # The kernel shows the environment a moment after the program has begun. Until then it would seem to have ended.
    while child.poll() is None and not of(place)[name].lives:
        time.sleep(0.01)


def _as(user):
    if user is None:
        return {}
    return {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}


def run(arguments, text="", seconds=60, user=None, **environment):
    """Runs a program to its end and returns (status, output, errors). The status is None if it did not end in time."""
    try:
        done = subprocess.run(
            arguments, input=text, capture_output=True, text=True, timeout=seconds, errors="replace",
            cwd="/", env=_environment(**environment), **_as(user))
        return done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        return None, "", f"no answer in {seconds} seconds"
    except OSError as problem:
        return 127, "", f"{arguments[0]}: {problem.strerror}"


def _environment(**more):
    # Nothing of the caller's settings for the clients of databases, and messages that are understood.
    kept = {key: os.environ[key] for key in ("HOME", "TMPDIR", "TERM", "USER") if key in os.environ}
    return {**kept, "PATH": PATH, "LC_ALL": "C.UTF-8", **more}


def of(place):
    """All that run: {name: Family}; an empty family for every other name."""
    found = collections.defaultdict(Family)
    wanted = f"{OF}={place.path}".encode("utf-8", "surrogateescape")
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            variables = _variables(entry, place)
            if wanted not in variables:
                continue
            with open(f"/proc/{entry}/stat") as file:
                state, _, _, session = file.read().rpartition(")")[2].split()[:4]
        except (OSError, ValueError):
            continue
        name = next((v.partition(b"=")[2].decode() for v in variables if v.startswith(NAME.encode() + b"=")), "")
        if state not in "ZX":
            found[name].states[int(entry)] = state
            # The member is the leader of its session, which also has its children.
            if session == entry:
                found[name].head = int(entry)
    return found


def _variables(entry, place):
    """Returns the environment of a process. Only root can read a relay's, so other users recognize it by its settings."""
    try:
        with open(f"/proc/{entry}/environ", "rb") as file:
            return file.read().split(b"\0")
    except PermissionError:
        with open(f"/proc/{entry}/cmdline", "rb") as file:
            words = [word.decode("utf-8", "surrogateescape") for word in file.read().split(b"\0")]
        folder, name = os.path.split(words[2]) if words[1:2] == ["--config"] and len(words) > 2 else ("", "")
        if folder != place.at("installation"):
            return []
        named = {OF: place.path, NAME: name.removesuffix(".yaml")}
        return [f"{key}={value}".encode("utf-8", "surrogateescape") for key, value in named.items()]


def await_end(place, names, seconds):
    """Waits until none of them runs; False if some still do."""
    limit = time.monotonic() + seconds
    while True:
        _reap()
        running = of(place)
        if not any(running[name].states for name in names):
            return True
        if time.monotonic() > limit:
            return False
        time.sleep(0.05)


def _reap():
    # Ended children of this run stay as zombies until they are reaped.
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def kill(place, names):
    """Kills members with SIGKILL and waits for their end. The second round kills children that were just being started."""
    for _ in range(3):
        running = of(place)
        for name in names:
            running[name].send(signal.SIGKILL)
        if await_end(place, names, 10):
            return True
    return False


def end_of_log(place, name, lines=15, only=None):
    try:
        with open(place.at("log", f"{name}.log"), errors="replace") as file:
            all_lines = [line.rstrip() for line in file]
    except OSError:
        return ""
    chosen = [line for line in all_lines if only is None or only in line] or all_lines
    return "\n".join("  " + line[:300] for line in chosen[-lines:])
