"""The directory of a cluster: its files, its ports, and the lock that lets only one command change it at a time."""
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
    """An error message that says what is wrong and what to do."""


class Place:
    # Below the system's ephemeral ports, so that no connection takes one while a member is down.
    FIRST, STRIDE, COUNT = 21000, 50, 200
    OFFSETS = {
        PROXY: 0, "relay1": 1, "relay2": 2, "node1": 11, "node2": 12, "node3": 13,
        "metrics1": 3, "metrics2": 4,
        "group1": 21, "group2": 22, "group3": 23, "ist1": 31, "ist2": 32, "ist3": 33, "sst1": 41, "sst2": 42, "sst3": 43}

    def __init__(self, path):
        self.path = os.path.realpath(path)
        self.base, self.members = 0, ()
        # Whether this run has made the directory, and so may remove it.
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
        """Creates a cluster in a directory that is missing or empty."""
        # The system allows 107 bytes for the path of a node's socket.
        if len(os.fsencode(self.at("node1", "sock"))) > 100:
            raise CannotDo(f"{self.path} is too long for the nodes' sockets. Choose a shorter DIR, such as /tmp/cluster.")
        if set(self.path) & set("\"'\\;\n#$ %"):
            raise CannotDo(f"{self.path} has spaces or characters that the nodes' settings cannot contain. Choose another DIR.")
        try:
            os.makedirs(self.path, exist_ok=True)
            # Nodes that root starts must reach their own directories in it. Secrets are in directories of their own.
            os.chmod(self.path, 0o711 if os.getuid() == 0 else 0o700)
            if os.listdir(self.path):
                raise CannotDo(f"{self.path} is not empty. Choose a DIR that is empty or missing.")
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
        """Locks the directory until this program ends."""
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotDo(f"Another dev/cluster is running on {self.path}. Try again when it has ended.")

    def unlock(self):
        os.close(self._lock)

    def require_free(self, *names):
        for name in names:
            if not _is_free(self.port(name)):
                raise CannotDo(
                    f"Port {self.port(name)}, which belongs to {name} of this cluster, is used by another program. End it"
                    f" (`ss -tlnp sport = {self.port(name)}` shows it), or start over: dev/cluster down {self.path}")

    def _free_base(self):
        # Clusters in different directories begin their search at different ports.
        start = zlib.crc32(os.fsencode(self.path))
        for turn in range(self.COUNT):
            base = self.FIRST + (start + turn) % self.COUNT * self.STRIDE
            if all(_is_free(base + offset) for offset in self.OFFSETS.values()):
                return base
        raise CannotDo(f"No free ports between {self.FIRST} and {self.FIRST + self.COUNT * self.STRIDE}. End the programs that use them.")


def _is_free(port):
    with socket.socket() as probe:
        # As servers bind: a recently closed connection does not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
