"""The programs of the benchmark: the store, the relay, the reference and the client."""
import contextlib
import json
import os
import re
import socket
import subprocess
import time
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
WEBSITE = "shop"


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def compile_all(place):
    """Compiles the client, the reference and the counting library into a directory."""
    sources = sorted(os.path.join(HERE, "client", name) for name in os.listdir(os.path.join(HERE, "client"))
                     if name.endswith(".c"))
    compiler = ["cc", "-std=gnu11", "-O2", "-Wall"]
    for words in (["-Wno-deprecated-declarations", *sources, "-lnghttp2", "-lssl", "-lcrypto", "-lm", "-o", "client"],
                  [os.path.join(HERE, "reference.c"), "-lsqlite3", "-lmariadb", "-o", "reference"],
                  ["-fPIC", "-shared", "-ftls-model=initial-exec", os.path.join(HERE, "counts.c"), "-ldl", "-o", "counts.so"]):
        subprocess.run(compiler + words, cwd=place, check=True)


def end(process):
    if process is not None and process.poll() is None:
        process.terminate()
        process.wait()


class SQLite:
    name, process = "sqlite", None

    def __init__(self, place):
        self.url, self.reference = f"sqlite:{place}/twoefay.db", f"sqlite:{place}/reference.db"

    def restart(self):
        pass

    def stop(self):
        pass


class MariaDB:
    """A MariaDB server for this benchmark alone, with durable commits."""
    name = "mariadb"

    def __init__(self, place, options=()):
        self.socket, self.data = os.path.join(place, "socket"), os.path.join(place, "data")
        common = ["--no-defaults", f"--datadir={self.data}", f"--tmpdir={place}"]
        if os.getuid() == 0:
            common.append("--user=root")
        self.environment = dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin:/sbin")
        self.log = os.path.join(place, "mariadb.log")
        self.command = ["mariadbd", *common, f"--socket={self.socket}", "--skip-networking",
                        "--innodb-flush-log-at-trx-commit=1", *options]
        with open(self.log, "w") as log:
            subprocess.run(["mariadb-install-db", *common, "--auth-root-authentication-method=normal", "--skip-test-db"],
                           check=True, stdout=log, stderr=log, env=self.environment)
        self.start()
        self.query("CREATE DATABASE twoefay; CREATE DATABASE reference")
        self.url = f"mariadb://root@localhost/twoefay?socket={self.socket}"
        self.reference = f"mariadb:{self.socket}/reference"

    def start(self):
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, env=self.environment)
        for _ in range(600):
            try:
                self.query("SELECT 1")
                return
            except subprocess.CalledProcessError:
                if self.process.poll() is not None:
                    raise SystemExit("mariadbd has ended; see mariadb.log, with --keep")
                time.sleep(0.1)
        raise SystemExit("mariadbd does not answer")

    def restart(self):
        self.stop()
        self.start()

    def query(self, sql):
        return subprocess.run(["mariadb", "--no-defaults", "--user=root", f"--socket={self.socket}", "-N", "-e", sql],
                              check=True, capture_output=True, text=True).stdout

    def settle(self):
        """Waits until nothing is left of a restart or of a load of rows: the server first reads the pages back that it had
        in memory, and writes changed ones, with a processor and the disk."""
        self.query("SET GLOBAL innodb_max_dirty_pages_pct = 1")
        while True:
            status = dict(line.split("\t", 1) for line in self.query(
                "SHOW GLOBAL STATUS WHERE Variable_name IN ('Innodb_buffer_pool_load_status', 'Innodb_buffer_pool_pages_dirty', "
                "'Innodb_buffer_pool_pages_total', 'Innodb_history_list_length')").splitlines())
            dirty = int(status["Innodb_buffer_pool_pages_dirty"]) / int(status["Innodb_buffer_pool_pages_total"])
            if (dirty < 0.02 and int(status["Innodb_history_list_length"]) < 1000
                    and "completed" in status["Innodb_buffer_pool_load_status"]):
                break
            time.sleep(1)
        self.query("SET GLOBAL innodb_max_dirty_pages_pct = 90")

    def stop(self):
        end(self.process)


class PushService:
    """`twoefay fake-apns`, which accepts every push."""

    def __init__(self, place, tool):
        self.port = free_port()
        self.process = subprocess.Popen(
            [tool, "fake-apns", "--listen", f"127.0.0.1:{self.port}", "--directory", os.path.join(place, "fake-apns")],
            stdout=subprocess.PIPE, text=True)
        self.settings = []
        for line in self.process.stdout:
            if self.settings and not line.startswith(" "):
                break
            if self.settings or line.startswith("push:"):
                self.settings.append(line)
        # Its lines are not read any more, and must not block it.
        self.reader = subprocess.Popen(["cat"], stdin=self.process.stdout, stdout=subprocess.DEVNULL)

    def stop(self):
        end(self.process)
        end(self.reader)


class Relay:
    """A relay with one website, which may open any number of logins."""

    def __init__(self, place, programs, store, pushes, level="warning"):
        self.place, self.programs, self.store, self.process, self.counts = f"{place}/relay", programs, store, None, None
        self.port, self.metrics, self.level = free_port(), free_port(), level
        self.settings = os.path.join(self.place, "twoefay.yaml")
        self.pushes = PushService(place, f"{programs}/twoefay") if pushes else None
        tool = [os.path.join(programs, "twoefay")]
        subprocess.run([*tool, "init", self.place, "--listen", f"127.0.0.1:{self.port}", "--storage", store.url], check=True,
                       stdout=subprocess.DEVNULL)
        self._edit()
        subprocess.run(
            [*tool, "--config", self.settings, "website", "add", WEBSITE, "--login-limit", "1000", "--push-limit", "100",
             "--limit-logins-minute", "none", "--limit-logins-day", "none", "--limit-pushes-day", "none", "--out", self.place],
            check=True, stdout=subprocess.DEVNULL)

    def _edit(self):
        """All phones call from one address, and the log has the lines that are wanted."""
        with open(self.settings) as file:
            text = file.read()
        for key, value in (("level", self.level), ("handshakes", "100000"), ("first_request", "3600"),
                           ("unidentified", "86400")):
            text, count = re.subn(rf"^  # {key}: .*$", f"  {key}: {value}", text, flags=re.MULTILINE)
            assert count == 1, key
        text, count = re.subn(r"^  # listen: 127\.0\.0\.1:9464$", f"  listen: 127.0.0.1:{self.metrics}", text, flags=re.MULTILINE)
        assert count == 1, "metrics.listen"
        if self.pushes:
            assert "push:\n  apns:\n" in text, "push"
            text = text.replace("push:\n  apns:\n", "".join(self.pushes.settings))
        self.origin = re.search(r"^origin: (\S+)", text, re.MULTILINE).group(1)
        self.seal = re.search(r"^#? ?seal: (\S+)", text, re.MULTILINE).group(1)
        with open(self.settings, "w") as file:
            file.write(text)

    def start(self, counts=None):
        """Starts the relay. With the path of counts.so, what it does is counted."""
        environment = dict(os.environ)
        if counts is not None:
            self.counts = os.path.join(self.place, "counts")
            environment |= {"LD_PRELOAD": counts, "COUNTS_FILE": self.counts}
        else:
            self.counts = None
        with open(f"{self.place}/relay.log", "ab") if self.level != "warning" else contextlib.nullcontext() as log:
            self.process = subprocess.Popen(
                [os.path.join(self.programs, "twoefayd"), "--config", self.settings], stdin=subprocess.DEVNULL, stderr=log,
                env=environment)
        check = [os.path.join(self.programs, "twoefayd"), "--config", self.settings, "--health"]
        for _ in range(300):
            if self.process.poll() is not None:
                raise SystemExit("the relay has ended")
            if subprocess.run(check, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0 and self._has_metrics():
                return
            time.sleep(0.1)
        raise SystemExit("the relay does not answer")

    def _has_metrics(self):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{self.metrics}/metrics", timeout=10).close()
            return True
        except urllib.error.URLError:
            return False

    def stop(self):
        end(self.process)
        self.process = None


class LineProgram:
    """A program that answers each line with a line."""

    def __init__(self, words):
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{os.path.basename(self.process.args[0])} has ended with status {self.process.wait()}")
        return line.strip()

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.read()

    def stop(self):
        self.process.stdin.close()
        end(self.process)


class Reference(LineProgram):
    def __init__(self, tools, store):
        super().__init__([os.path.join(tools, "reference"), store.reference])

    def measure(self, seconds):
        return json.loads(self.ask(str(seconds)))


class Client(LineProgram):
    """The website and the phones."""

    def __init__(self, tools, relay):
        words = self.words(tools, relay)
        super().__init__([*words, "load"])
        self.signature = json.loads(self.read())["signature_us"]

    @staticmethod
    def words(tools, relay):
        return [os.path.join(tools, "client"), str(relay.port), f"{relay.place}/ca.pem", relay.origin, WEBSITE,
                f"{relay.place}/{WEBSITE}.pem", f"{relay.place}/{WEBSITE}.key", f"{relay.place}/phones"]

    @classmethod
    def enrol(cls, tools, relay, count):
        """Enrols users through the API, and returns the seconds that it took."""
        began = time.monotonic()
        subprocess.run([*cls.words(tools, relay), "enrol", str(count), *(["pushes"] if relay.pushes else [])], check=True)
        return time.monotonic() - began
