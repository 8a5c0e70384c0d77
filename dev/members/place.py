"""The directory of a cluster: what lies where, which ports it has, and that only one command changes it at a time."""
import fcntl
import json
import os
import socket
import zlib

NODES = ("node1", "node2", "node3")
RELAYS = ("relay1", "relay2")
PROXY = "proxy"
MARK = "cluster.json"


class CannotDo(Exception):
    """What went wrong, and what to do next."""


class Place:
    # Below the ports that the system gives to connections, so that no connection takes one while a member is away.
    FIRST, STRIDE, COUNT = 21000, 50, 200
    OFFSETS = {
        PROXY: 0, "relay1": 1, "relay2": 2, "node1": 11, "node2": 12, "node3": 13,
        "metrics1": 3, "metrics2": 4,
        "group1": 21, "group2": 22, "group3": 23, "ist1": 31, "ist2": 32, "ist3": 33, "sst1": 41, "sst2": 42, "sst3": 43}

    def __init__(self, path):
        self.path = os.path.realpath(path)
        self.base, self.members = 0, ()
        # By this run: then it may remove it, too.
        self.is_made = False
        self._lock = None

    def at(self, *names):
        return os.path.join(self.path, *names)

    def port(self, name):
        return self.base + self.OFFSETS[name]

    @property
    def exists(self):
        return os.path.exists(self.at(MARK))

    def load(self):
        try:
            with open(self.at(MARK)) as file:
                kept = json.load(file)
            self.base, self.members = kept["base"], tuple(kept["members"])
        except FileNotFoundError:
            raise CannotDo(f"There is no cluster in {self.path}. `dev/cluster up {self.path}` makes one.")
        except (ValueError, KeyError, TypeError):
            raise CannotDo(f"{self.at(MARK)} is damaged. `dev/cluster down {self.path}` removes the cluster.")
        return self

    def make(self, members):
        """A new cluster, in a directory that is not there or empty."""
        # The nodes' sockets must fit into what the system allows for the name of one: 107 bytes.
        if len(os.fsencode(self.at("node1", "sock"))) > 100:
            raise CannotDo(f"{self.path} is too long a name for the nodes' sockets. Choose a shorter DIR, such as /tmp/cluster.")
        if set(self.path) & set("\"'\\;\n#$ %"):
            raise CannotDo(f"{self.path} has spaces or signs that settings of the nodes cannot hold. Choose another DIR.")
        try:
            os.makedirs(self.path, exist_ok=True)
            # Nodes that root starts have to come to their own part of it; what is secret has directories of its own.
            os.chmod(self.path, 0o711 if os.getuid() == 0 else 0o700)
            if os.listdir(self.path):
                raise CannotDo(f"{self.path} holds other things. Choose a DIR that is empty, or not there.")
            self.is_made = True
            for name in ("log", "keys"):
                os.mkdir(self.at(name), 0o700)
        except OSError as problem:
            raise CannotDo(f"{self.path}: {problem.strerror}. Choose another DIR.")
        self.base, self.members = self._free_base(), members
        with open(self.at(MARK), "w") as file:
            json.dump({"v": 1, "base": self.base, "members": members}, file)
            file.write("\n")

    def lock(self):
        """Held until this program ends."""
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotDo(f"Another dev/cluster is at work on {self.path}. Try again when it is done.")

    def unlock(self):
        os.close(self._lock)

    def require_free(self, *names):
        for name in names:
            if not _is_free(self.port(name)):
                raise CannotDo(
                    f"Port {self.port(name)}, which is this cluster's for {name}, is taken by another program. End that one"
                    f" (`ss -tlnp sport = {self.port(name)}` names it), or begin anew: dev/cluster down {self.path}")

    def _free_base(self):
        # Two clusters in two directories do not begin to look at the same place.
        start = zlib.crc32(os.fsencode(self.path))
        for turn in range(self.COUNT):
            base = self.FIRST + (start + turn) % self.COUNT * self.STRIDE
            if all(_is_free(base + offset) for offset in self.OFFSETS.values()):
                return base
        raise CannotDo(f"No free ports between {self.FIRST} and {self.FIRST + self.COUNT * self.STRIDE}. End what has them.")


def _is_free(port):
    with socket.socket() as probe:
        # As servers bind: a connection that ended a moment ago is in nobody's way.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
