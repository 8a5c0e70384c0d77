"""The MariaDB nodes: their settings, start, recovery and state."""
import getpass
import os
import re
import secrets
import shutil
import signal
import threading
import time

import processes
from place import NODES, CannotDo

# Seconds; enough to copy a whole node on a busy machine.
PATIENCE = 120
NO_NODE = "00000000-0000-0000-0000-000000000000"
# rsync's daemon, which receives the copy of a node, drops root's rights and could not write. So nodes never run as root.
USER = "mysql" if os.getuid() == 0 else None
HERE = os.path.dirname(os.path.abspath(__file__))


class Node:
    def __init__(self, place, name):
        self.place, self.name, self.number = place, name, name[-1]
        self.socket = place.at(name, "sock")

    # --- Files ---

    def prepare(self):
        """Writes the directory and settings. `install` makes the tables of the first node; the others copy them from it."""
        place = self.place
        for part in ("data", "tmp"):
            os.makedirs(place.at(self.name, part), mode=0o700)
            _give(place.at(self.name, part))
        _give(place.at(self.name))
        with open(os.path.join(HERE, "..", "..", "deploy", "node.cnf")) as file:
            text = file.read()
        values = {
            "NAME": self.name, "DIR": place.at(self.name), "SOCKET": self.socket, "PROVIDER": _provider(),
            "GROUPS": ",".join(f"127.0.0.1:{place.port(f'group{name[-1]}')}" for name in NODES),
            "GCACHE": "64M", "SQL": place.port(self.name), "GROUP": place.port(f"group{self.number}"),
            "IST": place.port(f"ist{self.number}"), "SST": place.port(f"sst{self.number}")}
        with open(place.at(self.name, "my.cnf"), "w") as file:
            file.write(re.sub(r"@([A-Z]{3,})@", lambda found: str(values.get(found[1], found[0])), text))

    def install(self):
        status, said, errors = processes.run(
            ["mariadb-install-db", "--no-defaults", f"--datadir={self.place.at(self.name, 'data')}",
             f"--tmpdir={self.place.at(self.name, 'tmp')}", "--skip-test-db", "--skip-name-resolve",
             # Only the user who made the cluster may log in, by the socket, without a password.
             "--auth-root-authentication-method=socket", f"--auth-root-socket-user={getpass.getuser()}"],
            seconds=PATIENCE, user=USER)
        if status != 0:
            raise CannotDo(f"mariadb-install-db failed:\n{(said + errors)[-1500:]}")

    # --- Running ---

    def start(self, begins=False):
        # Children of a killed node, such as a running copy.
        processes.kill(self.place, [self.name])
        self.place.require_free(self.name, f"group{self.number}")
        # Like Debian's service, this passes the last position to a killed node, or it would get a copy of everything.
        cluster, committed = self.found_position()
        position = [] if committed < 0 else [f"--wsrep-start-position={cluster}:{committed}"]
        processes.start(
            self.place, self.name,
            ["mariadbd", f"--defaults-file={self.place.at(self.name, 'my.cnf')}"]
            + position + (["--wsrep-new-cluster"] if begins else []), user=USER)

    @property
    def family(self):
        return processes.of(self.place)[self.name]

    def sql(self, text, seconds=5):
        """Returns rows as lists of strings, or None if the node does not answer."""
        status, said, self.error = processes.run(
            ["mariadb", "--no-defaults", f"--user={getpass.getuser()}", f"--socket={self.socket}",
             "--batch", "--skip-column-names", f"--connect-timeout={seconds}"], text=text, seconds=seconds + 1)
        return [line.split("\t") for line in said.splitlines()] if status == 0 else None

    def state(self, after=""):
        """Returns the node's state {state, component, size, committed, cluster}; {} if it does not answer."""
        rows = self.sql(after + "SHOW GLOBAL STATUS LIKE 'wsrep%'", seconds=2)
        said = {row[0]: row[1] for row in rows or [] if len(row) == 2}
        return {} if not said else {
            "state": said.get("wsrep_local_state_comment", ""), "component": said.get("wsrep_cluster_status", ""),
            "size": int(said.get("wsrep_cluster_size", 0)), "committed": int(said.get("wsrep_last_committed", -1)),
            "cluster": said.get("wsrep_cluster_state_uuid", "")}

    def await_synced(self, seconds=PATIENCE):
        """Waits until the node has joined all running nodes and has their data."""
        limit = time.monotonic() + seconds
        state = {}
        while time.monotonic() < limit:
            # A resumed node reports its old state until it hears from the others, so this read waits for them first.
            state = self.state(after="SET SESSION wsrep_sync_wait = 1; SELECT 1; ")
            if state.get("state") == "Synced" and state.get("component") == "Primary" and self._others_agree(state["size"]):
                return
            if not self.family.lives:
                said = processes.end_of_log(self.place, self.name, only="[ERROR]")
                raise CannotDo(f"{self.name} ended unexpectedly. Its log says:\n{said}")
            time.sleep(0.2)
        known = f"it is {state['state'] or 'silent'}, component {state['component']}" if state else "it does not answer"
        raise CannotDo(
            f"{self.name} was not synced with the others after {seconds} seconds: {known}."
            f" Its log says:\n{processes.end_of_log(self.place, self.name)}")

    def _others_agree(self, size):
        others = [node for node in all_of(self.place) if node.name != self.name and node.family.lives and not node.family.is_frozen]
        states = [node.state() for node in others]
        return size > len(others) and all(state.get("component") == "Primary" and state["size"] == size for state in states)

    def found_position(self):
        """Returns (cluster, last commit) of a stopped node, including the commits in its log on disk."""
        grastate = self.place.at(self.name, "data", "grastate.dat")
        try:
            with open(grastate) as file:
                kept = dict(re.findall(r"^(\w+):\s*(\S+)", file.read(), re.M))
        except OSError:
            return NO_NODE, -1
        if int(kept.get("seqno", -1)) >= 0:
            return kept.get("uuid", NO_NODE), int(kept["seqno"])
        # The node was killed, so only its tables have the position.
        status, said, errors = processes.run(
            ["mariadbd", f"--defaults-file={self.place.at(self.name, 'my.cnf')}", "--wsrep-recover"],
            seconds=PATIENCE, user=USER, **{processes.OF: self.place.path, processes.NAME: f"{self.name}-recovery"})
        found = re.findall(r"Recovered position:?\s*([0-9a-f-]{36}):(-?\d+)", said + errors)
        return (found[-1][0], int(found[-1][1])) if found else (NO_NODE, -1)

    def allow_beginning(self):
        """Lets this node start the cluster. Galera allows only the last node that left, but the caller has compared all nodes."""
        path = self.place.at(self.name, "data", "grastate.dat")
        with open(path) as file:
            text = file.read()
        with open(path, "w") as file:
            file.write(re.sub(r"^safe_to_bootstrap:.*$", "safe_to_bootstrap: 1", text, flags=re.M))


def all_of(place):
    return [Node(place, name) for name in NODES]


def make(place, tell):
    """Creates three nodes with an empty database, and a database user for the relays."""
    if USER and processes.run(["test", "-x", place.path], user=USER)[0] != 0:
        raise CannotDo(f"Nodes that root starts run as {USER}, who may not enter {place.path}. Choose another DIR, such as /tmp/cluster.")
    nodes = all_of(place)
    for node in nodes:
        node.prepare()
    tell("node1: creating the system tables")
    nodes[0].install()
    tell("node1: starting the cluster")
    nodes[0].start(begins=True)
    nodes[0].await_synced()
    password = secrets.token_hex(16)
    with open(os.open(place.at("keys", "db.password"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(password + "\n")
    made = nodes[0].sql(
        "CREATE DATABASE twoefay; "
        f"CREATE USER twoefay@'127.0.0.1' IDENTIFIED BY '{password}'; GRANT ALL ON twoefay.* TO twoefay@'127.0.0.1';")
    if made is None:
        raise CannotDo(f"node1 could not create the database: {nodes[0].error.strip()}")
    for node in nodes[1:]:
        tell(f"{node.name}: joining with a full copy")
        node.start()
        node.await_synced()


def bring_back(place, names, tell):
    """Resumes frozen nodes and starts stopped ones. Afterwards they are one cluster with every commit that any of them had."""
    nodes = [node for node in all_of(place) if node.name in names]
    if not nodes:
        return
    running = processes.of(place)
    for node in nodes:
        if running[node.name].is_frozen:
            tell(f"{node.name}: resuming")
            running[node.name].send(signal.SIGCONT)
    if not any(_is_primary(node) for node in all_of(place)):
        _find_together(place, names, tell)
    for node in nodes:
        if not node.family.lives:
            tell(f"{node.name}: starting, and getting the missed changes")
            node.start()
            node.await_synced()
    for node in nodes:
        node.await_synced()


def _is_primary(node):
    return node.family.lives and node.state().get("component") == "Primary"


def _find_together(place, named, tell):
    """Starts the cluster again if no node is in a majority. The node with the last commit starts; all three must be compared."""
    nodes = all_of(place)
    running = [node for node in nodes if node.family.lives]
    if running:
        # Nodes that were only disconnected join again by themselves, within Galera's time limit for a silent node.
        tell(f"{', '.join(node.name for node in running)}: waiting for a majority")
        limit = time.monotonic() + 25
        while time.monotonic() < limit:
            if any(_is_primary(node) for node in running):
                return
            time.sleep(0.3)
    frozen = [node.name for node in running if node.family.is_frozen]
    if frozen:
        raise CannotDo(f"No majority, and {', '.join(frozen)} frozen. Resume them too: start {' '.join(frozen)}")
    missing = [node.name for node in nodes if node not in running and node.name not in named]
    if missing:
        raise CannotDo(
            "No node is in a majority, and all nodes are needed to find the one with the last commit."
            f" Start {', '.join(missing)} with the others: `dev/cluster up {place.path}` starts all.")
    for node in running:
        # Without a majority it serves no client. A stopped node reports its exact position.
        tell(f"{node.name}: stopping, because it has no majority")
        stop(place, [node.name])
    tell("looking for the node with the last commit")
    positions = {}
    askers = [threading.Thread(target=lambda n=node: positions.__setitem__(n.name, n.found_position())) for node in nodes]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    clusters = {cluster for cluster, _ in positions.values()} - {NO_NODE}
    if len(clusters) != 1:
        raise CannotDo(f"The nodes belong to different clusters, or to none: {positions}. Start over: dev/cluster down {place.path}")
    first = max(nodes, key=lambda node: positions[node.name][1])
    tell(f"{first.name}: starting the cluster again, at commit {positions[first.name][1]}")
    # The saved view of the former group is out of date.
    for node in nodes:
        if os.path.exists(place.at(node.name, "data", "gvwstate.dat")):
            os.remove(place.at(node.name, "data", "gvwstate.dat"))
    first.allow_beginning()
    first.start(begins=True)
    first.await_synced()


def stop(place, names):
    """Stops nodes as an operator does: with everything on disk, and the others informed."""
    running = processes.of(place)
    for name in names:
        running[name].send(signal.SIGTERM)
        running[name].send(signal.SIGCONT)
    if not processes.await_end(place, names, 30):
        processes.kill(place, names)


def _give(path):
    if USER:
        shutil.chown(path, USER)


def _provider():
    for path in ("/usr/lib/galera/libgalera_smm.so", "/usr/lib64/galera-4/libgalera_smm.so", "/usr/lib64/galera/libgalera_smm.so"):
        if os.path.exists(path):
            return path
    raise CannotDo("There is no libgalera_smm.so. On Debian: dev/need cluster")


def require_programs():
    missing = [
        program for program in ("mariadbd", "mariadb", "mariadb-install-db", "wsrep_sst_rsync", "rsync", "lsof")
        if not shutil.which(program, path=processes.PATH)]
    if missing:
        raise CannotDo(f"Not here: {', '.join(missing)}. On Debian: dev/need cluster")
    _provider()
