"""Counters of a process and of a MariaDB server: processor time by thread, context switches, statements, commits."""
import collections
import glob
import os
import re
import struct
import urllib.request

# Variables of a MariaDB server that show what a login costs it. Com_… counts prepared statements, too.
READS, WRITES = ("Com_select",), ("Com_insert", "Com_insert_select", "Com_update", "Com_update_multi", "Com_delete", "Com_replace")
STATUS = (*READS, *WRITES, "Com_begin", "Com_commit", "Com_rollback", "Com_stmt_execute", "Questions", "Innodb_data_fsyncs",
          "Innodb_os_log_written", "Bytes_received", "Bytes_sent")
# A slot of counts.c.
SLOT = struct.Struct("8Q")


def name_of(thread):
    """Returns the name of a thread without its number, so that threads of one kind are added."""
    return re.sub(r"[-_ ]?\d+$", "", thread) or thread


def process(pid, names=None):
    """Returns nanoseconds by thread name, and the context switches of all threads. The names are by thread id."""
    times, switches = collections.Counter(), collections.Counter()
    for task in glob.glob(f"/proc/{pid}/task/*"):
        try:
            with open(task + "/comm") as file:
                name = name_of(file.read().strip()) if names is None else names.get(int(os.path.basename(task)), "background")
            with open(task + "/schedstat") as file:
                times[name] += int(file.read().split()[0])
            with open(task + "/status") as file:
                for line in file:
                    if "ctxt_switches" in line:
                        kind, count = line.split()
                        switches["involuntary" if kind.startswith("non") else "voluntary"] += int(count)
        except FileNotFoundError:
            pass  # the thread has ended
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    tick = 1e9 / os.sysconf("SC_CLK_TCK")
    return {"threads": times, "switches": switches,
            "kernel": collections.Counter({"user": int(fields[11]) * tick, "system": int(fields[12]) * tick})}


def metrics(port):
    """Returns the relay's own counts of reads and scripts that the store answered."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
        text = page.read().decode()
    found = re.findall(r'^twoefay_store_seconds_count\{kind="(\w+)"\} (\d+)', text, re.MULTILINE)
    return collections.Counter({kind: int(count) for kind, count in found})


def server(store):
    """Returns the counts of a MariaDB server."""
    names = ",".join(f"'{name}'" for name in STATUS)
    rows = store.query(f"SHOW GLOBAL STATUS WHERE Variable_name IN ({names})")
    return collections.Counter({name: int(value) for name, value in (row.split("\t") for row in rows.splitlines())})


def connections(store):
    """Returns names for the threads of a MariaDB server that serve connections, which have none of their own."""
    rows = store.query("SELECT tid, id, db FROM information_schema.processlist").splitlines()
    found = sorted((int(number), int(thread)) for thread, number, database in (row.split("\t") for row in rows)
                   if database == "twoefay")
    return {thread: f"connection {place} of the relay" for place, (_, thread) in enumerate(found, 1)}


def preloaded(path, pid):
    """Returns what counts.c has counted, in all and by thread name."""
    names, kinds = {}, ("allocations", "bytes", "syncs", "statements", "commits")
    for task in glob.glob(f"/proc/{pid}/task/*"):
        with open(task + "/comm") as file:
            names[int(os.path.basename(task))] = name_of(file.read().strip())
    threads = collections.defaultdict(collections.Counter)
    with open(path, "rb") as file:
        for thread, *counts in SLOT.iter_unpack(file.read()):
            if thread:
                for name in ("all", names.get(thread, "ended")):
                    threads[name].update(dict(zip(kinds, counts)))
    return dict(threads)


def snapshot(relay):
    """Returns everything that is counted, as counters by name."""
    counted = {"relay": process(relay.process.pid), "store_requests": metrics(relay.metrics)}
    if relay.store.process is not None:
        counted["mariadbd"] = process(relay.store.process.pid, connections(relay.store))
        counted["statements"] = server(relay.store)
    if relay.counts is not None:
        counted["preloaded"] = preloaded(relay.counts, relay.process.pid)
    return counted


def per_login(before, after, logins):
    """Returns the differences of two snapshots, divided by the logins, in the same structure."""
    if isinstance(after, collections.Counter):
        return {name: round((after[name] - before[name]) / logins, 4) for name in sorted(after) if after[name] != before[name]}
    return {name: per_login(before.get(name, collections.Counter()), after[name], logins) for name in after}
