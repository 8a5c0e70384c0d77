"""Servers of PostgreSQL and MariaDB for the tests of stores: throwaway ones, over a socket alone.

TWOEFAY_TEST_POSTGRESQL (a connection string) and TWOEFAY_TEST_MYSQL (an options file) name servers
that run already, and are used in place of these.
"""

import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# A database server refuses to run as root.
_USER = "nobody" if os.geteuid() == 0 else None


@contextmanager
def _directory() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="twoefay-"))  # sockets need a short path
    if _USER:
        user = pwd.getpwnam(_USER)
        os.chown(path, user.pw_uid, user.pw_gid)
    try:
        yield path
    finally:
        shutil.rmtree(path)


def _program(name: str) -> str | None:
    newest = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", *map(str, newest)])
    return shutil.which(name, path=path)


def _start(*words: object, at: Path, **options: Any) -> subprocess.Popen[bytes]:
    identity = {"user": _USER, "group": pwd.getpwnam(_USER).pw_gid, "extra_groups": []} if _USER else {}
    with (at / "log").open("ab") as log:
        return subprocess.Popen(list(map(str, words)), cwd=at, stdout=log, stderr=log, **identity, **options)


def _run(*words: object, at: Path) -> None:
    if _start(*words, at=at).wait() != 0:
        raise AssertionError(f"{words[0]}: {(at / 'log').read_text()}")


def _end_with_parent() -> None:
    """A server ends with the tests, also if they are killed (prctl, PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


@contextmanager
def _serving(*words: object, at: Path) -> Iterator[None]:
    """Both servers say that they are ready, as sd_notify has it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind(str(at / "told"))
        os.chmod(at / "told", 0o666)
        told.settimeout(300)
        environment = {**os.environ, "NOTIFY_SOCKET": str(at / "told")}
        server = _start(*words, at=at, env=environment, preexec_fn=_end_with_parent)
        try:
            while b"READY=1" not in told.recv(4096):
                pass
            yield
        finally:
            server.send_signal(signal.SIGQUIT)  # PostgreSQL ends its other processes, too
            server.wait()


@contextmanager
def postgresql() -> Iterator[str | None]:
    """A connection string; None if PostgreSQL is not installed."""
    server, initdb = _program("postgres"), _program("initdb")
    if "TWOEFAY_TEST_POSTGRESQL" in os.environ:
        yield os.environ["TWOEFAY_TEST_POSTGRESQL"]
    elif not server or not initdb:
        yield None
    else:
        with _directory() as at:
            _run(initdb, "-D", at / "data", "-U", "twoefay", "-A", "trust", "-N", at=at)
            with _serving(server, "-D", at / "data", "-k", at, "-h", "", "-F", at=at):
                yield f"host={at} user=twoefay dbname=postgres"


@contextmanager
def mysql() -> Iterator[dict[str, str] | None]:
    """Arguments of PyMySQL's `connect`; None if MariaDB is not installed."""
    server, install = _program("mariadbd"), _program("mariadb-install-db")
    if "TWOEFAY_TEST_MYSQL" in os.environ:
        yield {"read_default_file": os.environ["TWOEFAY_TEST_MYSQL"]}
    elif not server or not install:
        yield None
    else:
        with _directory() as at:
            common = ("--no-defaults", f"--datadir={at / 'data'}", f"--tmpdir={at}")
            _run(install, *common, "--auth-root-authentication-method=normal", at=at)
            with _serving(server, *common, f"--socket={at / 'socket'}", "--skip-networking", at=at):
                yield {"unix_socket": str(at / "socket"), "user": "root", "database": "test"}
