"""The relays of one installation, and the HAProxy in front of them."""
import json
import os
import re
import shutil
import signal
import time

import processes
from place import NODES, PROXY, RELAYS, CannotDo

HOST = "localhost"
PATIENCE = 60
WEBSITE = "shop"
# The relays accept client addresses only from this address. Local clients that bypass the proxy have another one.
PROXY_ADDRESS = "127.0.0.2"


class Programs:
    """The paths of twoefay and twoefayd."""

    def __init__(self, directory):
        self.twoefay, self.twoefayd = (os.path.join(os.path.abspath(directory), name) for name in ("twoefay", "twoefayd"))
        for path in (self.twoefay, self.twoefayd):
            if not os.access(path, os.X_OK):
                raise CannotDo(f"The program {path} does not exist. Build it, or name another directory with --programs.")


def make(place, programs, tell):
    """Creates one installation for both relays: the same keys, origin and database. Each relay has its own settings file in it."""
    installation = place.at("installation")
    tell("installation: keys, certificates and tables")
    _tool(
        programs, "init", installation, "--storage", _storage(place, "relay1"), "--listen",
        f"127.0.0.1:{place.port('relay1')}", "--host", HOST, "127.0.0.1")
    settings = os.path.join(installation, "twoefay.yaml")
    with open(settings) as file:
        text = file.read()
    for name in RELAYS:
        port = place.port(f"metrics{name[-1]}")
        own = _set(text, "origin", f"https://{HOST}:{place.port(PROXY)}")
        own = _set(own, "listen", f"127.0.0.1:{place.port(name)}")
        own = _set(own, "storage", _storage(place, name))
        own = _set(own, "# proxies", PROXY_ADDRESS, to="proxies")
        # Two groups have this key, with different examples.
        own = _set(own, "  # listen", f"127.0.0.1:{port}", to="  listen", example="127.0.0.1:9464")
        with open(os.open(os.path.join(installation, f"{name}.yaml"), os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write(own)
    os.remove(settings)
    tell(f"installation: the website {WEBSITE}")
    _tool(programs, "--config", settings_of(place, "relay1"), "website", "add", WEBSITE, "--out", place.at("keys"))


def settings_of(place, name):
    return place.at("installation", f"{name}.yaml")


def _storage(place, name):
    # Each relay tries another node first, and the others after it.
    first = RELAYS.index(name)
    hosts = ",".join(f"127.0.0.1:{place.port(node)}" for node in NODES[first:] + NODES[:first])
    return f"mariadb://twoefay@{hosts}/twoefay?password_file=../keys/db.password"


def _set(text, key, value, to=None, example=".*"):
    """Sets a value. `to` is the key itself if `key` is commented out in the file, with this example as its value."""
    text, count = re.subn(rf"^{key}: {example}$", lambda _: f"{to or key}: {value}", text, flags=re.M)
    if count != 1:
        raise CannotDo(f"The settings that `twoefay init` writes have no {key}: the programs have another version than dev/cluster.")
    return text


def _tool(programs, *arguments):
    status, said, errors = processes.run([programs.twoefay, *arguments], seconds=PATIENCE)
    if status != 0:
        raise CannotDo(f"twoefay {' '.join(arguments[:4])} failed: {(errors or said).strip()[-1500:]}")


def start(place, name, programs):
    place.require_free(name, f"metrics{name[-1]}")
    processes.start(place, name, [programs.twoefayd, "--config", settings_of(place, name)])


def start_proxy(place):
    place.require_free(PROXY)
    processes.start(
        place, PROXY, ["haproxy", "-db", "-f", place.at("haproxy.cfg")],
        TWOEFAY_FRONT=f"127.0.0.1:{place.port(PROXY)}", TWOEFAY_SOURCE=PROXY_ADDRESS, TWOEFAY_HOST=HOST, TWOEFAY_CA=place.at("installation", "ca.pem"),
        TWOEFAY_CONNECTIONS="1000", TWOEFAY_PROXY_SOCKET=place.at("proxy.sock"),
        **{f"TWOEFAY_{name.upper()}": f"127.0.0.1:{place.port(name)}" for name in RELAYS})


def bring_back(place, names, programs, tell):
    for name in names:
        family = processes.of(place)[name]
        if family.is_frozen:
            tell(f"{name}: resuming")
            family.send(signal.SIGCONT)
        elif not family.lives:
            tell(f"{name}: starting")
            start_proxy(place) if name == PROXY else start(place, name, programs)
    for name in names:
        await_ready(place, name)


def await_ready(place, name):
    """Waits until a member is ready with its store. Other dependencies, such as a push service, do not matter."""
    limit = time.monotonic() + PATIENCE
    while time.monotonic() < limit:
        missing = ask(place, name)
        if missing is not None and "store" not in missing:
            return
        if not processes.of(place)[name].lives:
            raise CannotDo(f"{name} ended unexpectedly. Its log says:\n{processes.end_of_log(place, name)}")
        time.sleep(0.2)
    raise CannotDo(
        f"{name} was not ready after {PATIENCE} seconds: {in_words(missing)}. Its log says:\n{processes.end_of_log(place, name)}")


def ask(place, name):
    """Returns the missing dependencies, by GET /ready (of the proxy, through the proxy); None without an answer of a relay."""
    status, said, _ = processes.run(
        ["curl", "--disable", "--noproxy", "*", "--silent", "--http2", "--max-time", "7", "--cacert",
         place.at("installation", "ca.pem"), f"https://{HOST}:{place.port(name)}/ready"], seconds=9)
    try:
        return [part for part, word in json.loads(said)["dependencies"].items() if word != "ok"] if status == 0 else None
    except (ValueError, KeyError, AttributeError):
        return None


def in_words(missing):
    return "does not answer" if missing is None else f"without {', '.join(missing)}" if missing else "ready"


def stop(place, names):
    """Stops members as an operator does. A proxy ends at once, without waiting for open connections."""
    running = processes.of(place)
    for name in names:
        running[name].send(signal.SIGTERM)
        running[name].send(signal.SIGCONT)
    if not processes.await_end(place, names, 15):
        processes.kill(place, names)


def require_programs():
    missing = [program for program in ("curl", "haproxy") if not shutil.which(program, path=processes.PATH)]
    if missing:
        raise CannotDo(f"Not here: {', '.join(missing)}. On Debian: dev/need cluster")
