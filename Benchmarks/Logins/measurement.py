"""The cells of a store: the client's load between two runs of the reference, and the counters of the programs."""
import json
import os
import signal
import subprocess
import sys

import counters
import programs
import table

# The cell of the closed loop whose rate the open loop halves, and which is repeated with the counting library.
MIDDLE = 64


def processor_times():
    """Returns the time of all processors in ticks, and the idle part of it."""
    with open("/proc/stat") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return sum(ticks), ticks[3] + ticks[4]


class Measurement:
    """The cells of one store."""

    def __init__(self, given, tools, relay, report):
        self.given, self.relay, self.report = given, relay, report
        self.reference = programs.Reference(tools, relay.store)
        self.tools, self.client, self.last = tools, None, None

    def connect(self):
        self.client = programs.Client(self.tools, self.relay)
        self.report["signature_us"].append(self.client.signature)

    def disconnect(self):
        self.client.stop()

    def stop(self):
        self.reference.stop()
        if self.client is not None:
            programs.end(self.client.process)

    def cell(self, phones, auth, width, rate, is_counted=False):
        """Runs a cell between two runs of the reference. Returns its logins a second."""
        given = self.given
        warm = min(1.0, given.seconds / 4)
        answer = self.client.ask(f"{phones} {auth} {width} {rate:.3f} {given.seconds} {warm}")
        assert answer == "ready", answer
        before_reference = self.last or self.reference.measure(given.reference_seconds)
        ticks, counted = processor_times(), counters.snapshot(self.relay)
        result = json.loads(self.client.ask("go"))
        ended, after = processor_times(), counters.snapshot(self.relay)
        self.last = self.reference.measure(given.reference_seconds)
        logins = max(result["logins"], 1)
        each = counters.per_login(counted, after, logins)
        single, group = ((before_reference[kind] + self.last[kind]) / 2 for kind in ("single", "group"))
        # The logins that are open when the time is over are waited for, and so is their time: the relay works all the while.
        per_second = result["logins"] / result["whole_seconds"]
        cpu = {program: sum(each[program]["threads"].values()) / 1000 for program in ("relay", "mariadbd") if program in each}
        cpu["client"], cpu["client_user"] = (result[name] / logins * 1e6 for name in ("client_seconds", "client_user_seconds"))
        self.report["cells"].append({
            "store": self.relay.store.name, "loop": "closed" if width else "open", "width": width or None, "rate": rate or None,
            "auth": auth, "phones": phones, "is_counted": is_counted, "logins": result["logins"],
            "logins_per_second": per_second, "ratio_single": per_second / single, "ratio_group": per_second / group,
            "reference": {"before": before_reference, "after": self.last, "single": single, "group": group,
                          "apart": abs(before_reference["single"] - self.last["single"]) / single},
            "cpu_us": cpu, "idle": (ended[1] - ticks[1]) / max(ended[0] - ticks[0], 1), "per_login": each,
            "times": result["times"], "retried": result["retried"], "faults": result["faults"], "fault": result["fault"]})
        print(f"{table.load_of(self.report['cells'][-1])}, {phones}, {auth}: {per_second:.1f} logins/s", file=sys.stderr)
        return per_second

    def profile(self, phones):
        """Runs the middle cell under perf, and writes the shares of libraries, threads and functions of the relay."""
        given, width = self.given, min(MIDDLE, self.given.users)
        answer = self.client.ask(f"{phones} {given.auth[0]} {width} 0 {given.seconds} 0.5")
        assert answer == "ready", answer
        data = os.path.join(self.relay.place, "perf.data")
        perf = subprocess.Popen(["perf", "record", "-q", "-F", "499", "-o", data, "-p", str(self.relay.process.pid)])
        self.client.ask("go")
        perf.send_signal(signal.SIGINT)
        perf.wait()
        report = b"".join(
            subprocess.run(["perf", "report", "--stdio", "-q", "-i", data, "--sort", columns, "--percent-limit", "0.1"], check=True,
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
            for columns in ("dso", "comm,dso", "comm,dso,symbol"))
        path = f"{given.profile}.{self.relay.store.name}.{phones}.txt"
        with open(path, "wb") as file:
            subprocess.run(["swift", "demangle", "--simplified"], input=report, stdout=file, check=True)
        print(path, file=sys.stderr)

    def all_cells(self):
        given = self.given
        for phones in given.phones:
            for auth in given.auth:
                closed = {width: self.cell(phones, auth, width, 0) for width in given.concurrency}
                rate = given.rate or closed.get(MIDDLE, max(closed.values(), default=0)) / 2
                if rate > 0:
                    self.cell(phones, auth, 0, rate)
