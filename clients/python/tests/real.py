"""A real relay and a real phone: the programs twoefayd and twoefay, over loopback."""

import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

from twoefay import Store

DEFAULT = Path(__file__).parents[3] / ".build" / "debug"
PROGRAMS = Path(os.environ.get("TWOEFAY_PROGRAMS", DEFAULT))
ARE_THERE = (PROGRAMS / "twoefayd").exists() and (PROGRAMS / "twoefay").exists()


class RealRelay:
    """A relay with the website `shop`, in a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        with socket.socket() as probe:  # twoefayd has no port 0: its origin must be known before
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.origin = f"https://localhost:{self.port}"
        self.run("init", "relay", "--listen", f"127.0.0.1:{self.port}")
        settings = directory / "relay" / "twoefay.yaml"
        text = settings.read_text()
        settings.write_text(text.replace("\nwebhooks:\n", '\nwebhooks:\n  allow: "127.0.0.0/8, ::1"\n', 1))
        self.daemon: subprocess.Popen[str] | None = None

    def run(self, *words: str) -> str:
        done = subprocess.run(
            [PROGRAMS / "twoefay", *words], cwd=self.directory, capture_output=True, text=True, timeout=60
        )
        if done.returncode != 0:
            raise AssertionError(f"twoefay {' '.join(words)}: {done.stderr}{done.stdout}")
        return done.stdout

    def operate(self, *words: str) -> str:
        return self.run("--config", "relay/twoefay.yaml", *words)

    def start(self) -> None:
        """Returns when the relay says in its log that it listens."""
        log = (self.directory / "relay.log").open("a")
        command = [PROGRAMS / "twoefayd", "--config", "relay/twoefay.yaml"]
        self.daemon = subprocess.Popen(command, cwd=self.directory, stderr=subprocess.PIPE, text=True)
        assert self.daemon.stderr is not None
        for line in self.daemon.stderr:
            log.write(line)
            if "event=daemon.started" in line:
                break
        else:
            raise AssertionError((self.directory / "relay.log").read_text())
        # The rest of the log goes to the file, so that the pipe never fills up.
        subprocess.Popen(["cat"], stdin=self.daemon.stderr, stdout=log)

    def stop(self) -> None:
        if self.daemon is not None:
            self.daemon.terminate()
            self.daemon.wait()
            self.daemon = None

    def settings(self, store: Store, website: str = "shop") -> dict[str, Any]:
        """The arguments of a client."""
        at = self.directory
        files = {
            "ca": at / "relay" / "ca.pem",
            "certificate": at / f"{website}.pem",
            "key": at / f"{website}.key",
        }
        return {"origin": self.origin, **files, "store": store}

    # MARK: The phone

    def enrol(self, uri: str, phone: str = "phone") -> None:
        self.run("phone", "enrol", uri, "--keys", phone, "--json")

    def answer(self, what: str, challenge: str, number: str | None, phone: str = "phone") -> int:
        """`approve`, `deny` or `fraud`. Returns the exit status of the phone."""
        words = ["phone", what, "--keys", phone, "--challenge", challenge]
        words += ["--number", number] if number and what == "approve" else []
        return subprocess.run(
            [PROGRAMS / "twoefay", *words], cwd=self.directory, capture_output=True, timeout=60
        ).returncode

    def lose(self, phone: str = "phone") -> None:
        shutil.rmtree(self.directory / phone)
