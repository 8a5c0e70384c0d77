"""Where a website keeps pinned keys, secrets of open enrolments and open requests.

A store is what makes the relay untrusted: keep it in the website's own database. `SQLiteStore` is
for one machine, `DatabaseStore` for PostgreSQL, MySQL and others with a driver by DB-API 2.0,
`MemoryStore` for tests. `twoefay.django` has one on Django's models.

Its methods block. The asynchronous client calls them in a worker thread.
"""

import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from .jws import JWK, decode, encode

REQUEST_LIFE = 86_400
SECRET_LIFE = 86_400
EVENT_LIFE = 30 * 86_400
# So many old rows are deleted by one call: a login does not wait for all.
_MOST_OLD_ROWS = 100


class Store(Protocol):
    """The store of a website. Each method is atomic, for all processes of the website."""

    def add_user(self, username: str, token: str) -> None:
        """Stores the user's id at the relay; a later one replaces it."""

    def token(self, username: str) -> str | None: ...

    def add_secret(self, username: str, k: bytes, now: int) -> None:
        """Stores the `k` of an open enrolment. A user may have several."""

    def secrets(self, username: str, now: int) -> list[bytes]:
        """The user's `k`s of the last day: later a code that somebody kept must not count."""

    def pin(self, username: str, device: str, jwk: JWK, k: bytes) -> bool:
        """Pins a key and deletes every `k` of the user. False, and nothing is changed, if this `k` is
        not there any more, or if the phone has a key already: it is never replaced."""

    def pins(self, username: str) -> dict[str, JWK]:
        """The pinned keys of this user by device, and of nobody else. Unpinned ones are left out."""

    def was_pinned(self, username: str) -> bool:
        """Whether a phone of this user was ever pinned, even if it was unpinned since."""

    def unpin(self, username: str, device: str) -> None:
        """Revokes a key for ever, but keeps its row: `was_pinned` must stay true. Unless the phone was
        unpinned before, deletes every `k` of the user: it may have read one without being pinned."""

    def unpin_by_token(self, token: str, device: str) -> None:
        """The same, for the user with this id at the relay; nothing if there is none."""

    def forget(self, username: str) -> None:
        """Deletes everything about the user, also that a phone was pinned."""

    def open(self, request: str, now: int) -> None:
        """Stores the request of a new login."""

    def spend(self, request: str) -> bool:
        """Removes a request. True only for the one call that removed it."""

    def has_seen(self, event: str) -> bool: ...

    def see(self, event: str, now: int) -> None:
        """Stores the id of a webhook that was handled."""


class MemoryStore:
    """A store in memory. It forgets all pinned keys when the process ends: for tests and trials."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tokens: dict[str, str] = {}
        self._secrets: dict[str, dict[bytes, int]] = {}
        self._pins: dict[str, dict[str, JWK | None]] = {}  # None: unpinned
        self._open: dict[str, int] = {}
        self._seen: dict[str, int] = {}

    def add_user(self, username: str, token: str) -> None:
        self._tokens[username] = token

    def token(self, username: str) -> str | None:
        return self._tokens.get(username)

    def add_secret(self, username: str, k: bytes, now: int) -> None:
        with self._lock:
            self._secrets.setdefault(username, {})[k] = now

    def secrets(self, username: str, now: int) -> list[bytes]:
        with self._lock:
            return [k for k, at in self._secrets.get(username, {}).items() if at > now - SECRET_LIFE]

    def pin(self, username: str, device: str, jwk: JWK, k: bytes) -> bool:
        with self._lock:
            phones = self._pins.setdefault(username, {})
            if k not in self._secrets.get(username, {}) or device in phones:
                return False
            del self._secrets[username]
            phones[device] = jwk
            return True

    def pins(self, username: str) -> dict[str, JWK]:
        with self._lock:
            phones = self._pins.get(username, {}).items()
            return {device: jwk for device, jwk in phones if jwk is not None}

    def was_pinned(self, username: str) -> bool:
        return bool(self._pins.get(username))

    def unpin(self, username: str, device: str) -> None:
        with self._lock:
            phones = self._pins.get(username, {})
            if device not in phones or phones[device] is not None:
                self._secrets.pop(username, None)
            if device in phones:
                phones[device] = None

    def unpin_by_token(self, token: str, device: str) -> None:
        for username in [name for name, own in list(self._tokens.items()) if own == token]:
            self.unpin(username, device)

    def forget(self, username: str) -> None:
        with self._lock:
            self._tokens.pop(username, None)
            self._secrets.pop(username, None)
            self._pins.pop(username, None)

    def open(self, request: str, now: int) -> None:
        with self._lock:
            self._open = {old: at for old, at in self._open.items() if at > now - REQUEST_LIFE}
            self._open[request] = now

    def spend(self, request: str) -> bool:
        with self._lock:  # `open` copies the table, and would bring the request back
            return self._open.pop(request, None) is not None

    def has_seen(self, event: str) -> bool:
        return event in self._seen

    def see(self, event: str, now: int) -> None:
        with self._lock:
            self._seen = {old: at for old, at in self._seen.items() if at > now - EVENT_LIFE}
            self._seen[event] = now


# VARCHAR rather than TEXT: MySQL has no key over a TEXT. All rows are written by a key: a statement
# that has to look for its rows would lock those of other users in MySQL, and end in deadlocks.
_TABLES = (
    "twoefay_user (name VARCHAR(64) PRIMARY KEY, token VARCHAR(255) NOT NULL)",
    "twoefay_secret (name VARCHAR(64) NOT NULL, k VARCHAR(64) NOT NULL, at BIGINT NOT NULL,"
    " PRIMARY KEY (name, k))",
    "twoefay_phone (name VARCHAR(64) NOT NULL, device VARCHAR(255) NOT NULL,"
    " jwk VARCHAR(1000) NOT NULL, revoked SMALLINT DEFAULT 0 NOT NULL, PRIMARY KEY (name, device))",
    "twoefay_request (request VARCHAR(64) PRIMARY KEY, at BIGINT NOT NULL)",
    "twoefay_event (event VARCHAR(255) PRIMARY KEY, at BIGINT NOT NULL)",
)


def key_of(username: str) -> str:
    """The name as a key. Databases compare texts without case or trailing spaces, as their collation
    says: another user's phone must not count because of that."""
    return hashlib.sha256(username.encode()).hexdigest()


def _is_double(error: Exception) -> bool:
    """Whether a row is there already. Each driver has its own class with this name, by DB-API 2.0."""
    return any(kind.__name__ == "IntegrityError" for kind in type(error).__mro__)


class DatabaseStore:
    """A store in a database with a DB-API 2.0 driver, such as psycopg or PyMySQL.

    DatabaseStore(lambda: psycopg.connect("dbname=shop"))

    `connect` returns a connection, which is closed after each use: pass that of a pool if connecting
    is slow. `paramstyle` is the driver's `qmark` or, by default, `format`.
    """

    def __init__(self, connect: Callable[[], Any], paramstyle: str = "format", create: bool = True) -> None:
        if paramstyle not in ("qmark", "format", "pyformat"):
            raise ValueError("paramstyle must be qmark or format")
        self._connect = connect
        self._mark = "?" if paramstyle == "qmark" else "%s"
        for table in _TABLES if create else ():
            try:
                self._create(table)
            except Exception:
                # PostgreSQL fails if another process creates the table at this moment.
                self._create(table)

    def _create(self, table: str) -> None:
        with self._transaction() as run:
            run(f"CREATE TABLE IF NOT EXISTS {table}")

    @contextmanager
    def _transaction(self) -> Iterator[Callable[..., Any]]:
        connection = self._connect()
        try:
            cursor = connection.cursor()

            def run(statement: str, *values: object) -> Any:
                cursor.execute(statement.replace("?", self._mark), values)
                return cursor

            yield run
            connection.commit()
        except BaseException:
            connection.rollback()
            raise
        finally:
            connection.close()

    def _insert(self, statement: str, *values: object) -> bool:
        """Inserts a row, unless it is there. `INSERT … IF NOT EXISTS` differs between databases."""
        try:
            with self._transaction() as run:
                run(statement, *values)
        except Exception as error:
            if not _is_double(error):
                raise
            return False
        return True

    def _delete_old(self, table: str, before: int, *key: str) -> None:
        """Deletes rows by their keys: a search by time would lock the others (see above)."""
        with self._transaction() as run:
            select = f"SELECT {', '.join(key)} FROM {table} WHERE at < ? LIMIT {_MOST_OLD_ROWS}"  # noqa: S608
            old = run(select, before).fetchall()
        where = " AND ".join(f"{column} = ?" for column in key)
        for row in old:
            with self._transaction() as run:
                run(f"DELETE FROM {table} WHERE {where}", *row)  # noqa: S608

    def _column(self, statement: str, *values: object) -> list[str]:
        with self._transaction() as run:
            return [str(row[0]) for row in run(statement, *values).fetchall()]

    def add_user(self, username: str, token: str) -> None:
        insert = "INSERT INTO twoefay_user (name, token) VALUES (?, ?)"
        if not self._insert(insert, key_of(username), token):
            with self._transaction() as run:
                run("UPDATE twoefay_user SET token = ? WHERE name = ?", token, key_of(username))

    def token(self, username: str) -> str | None:
        found = self._column("SELECT token FROM twoefay_user WHERE name = ?", key_of(username))
        return found[0] if found else None

    def add_secret(self, username: str, k: bytes, now: int) -> None:
        self._delete_old("twoefay_secret", now - SECRET_LIFE, "name", "k")
        with self._transaction() as run:
            insert = "INSERT INTO twoefay_secret (name, k, at) VALUES (?, ?, ?)"
            run(insert, key_of(username), encode(k), now)

    def secrets(self, username: str, now: int) -> list[bytes]:
        select = "SELECT k FROM twoefay_secret WHERE name = ? AND at > ?"
        return [decode(k) for k in self._column(select, key_of(username), now - SECRET_LIFE)]

    def pin(self, username: str, device: str, jwk: JWK, k: bytes) -> bool:
        name = key_of(username)
        try:
            with self._transaction() as run:
                # Locks the user: of two that run at once, the second waits here, and finds no `k`.
                run("UPDATE twoefay_user SET token = token WHERE name = ?", name)
                delete = "DELETE FROM twoefay_secret WHERE name = ?"
                if run(f"{delete} AND k = ?", name, encode(k)).rowcount != 1:
                    return False
                run(delete, name)
                insert = "INSERT INTO twoefay_phone (name, device, jwk) VALUES (?, ?, ?)"
                run(insert, name, device, json.dumps(jwk))
        except Exception as error:
            if not _is_double(error):
                raise
            return False
        return True

    def pins(self, username: str) -> dict[str, JWK]:
        with self._transaction() as run:
            found = "SELECT device, jwk FROM twoefay_phone WHERE name = ? AND revoked = 0"
            rows = run(found, key_of(username)).fetchall()
        return {str(device): json.loads(jwk) for device, jwk in rows}

    def was_pinned(self, username: str) -> bool:
        return bool(self._column("SELECT device FROM twoefay_phone WHERE name = ?", key_of(username)))

    def unpin(self, username: str, device: str) -> None:
        self._unpin(key_of(username), device)

    def unpin_by_token(self, token: str, device: str) -> None:
        for name in self._column("SELECT name FROM twoefay_user WHERE token = ?", token):
            self._unpin(name, device)

    def _unpin(self, name: str, device: str) -> None:
        with self._transaction() as run:
            run("UPDATE twoefay_user SET token = token WHERE name = ?", name)  # the lock of `pin`
            phone = "WHERE name = ? AND device = ?"
            found = run(f"SELECT revoked FROM twoefay_phone {phone}", name, device).fetchone()  # noqa: S608
            if found is None or not found[0]:
                run("DELETE FROM twoefay_secret WHERE name = ?", name)
            run(f"UPDATE twoefay_phone SET revoked = 1 {phone}", name, device)  # noqa: S608

    def forget(self, username: str) -> None:
        with self._transaction() as run:
            for table in ("user", "secret", "phone"):
                run(f"DELETE FROM twoefay_{table} WHERE name = ?", key_of(username))  # noqa: S608

    def open(self, request: str, now: int) -> None:
        self._delete_old("twoefay_request", now - REQUEST_LIFE, "request")
        with self._transaction() as run:
            run("INSERT INTO twoefay_request (request, at) VALUES (?, ?)", request, now)

    def spend(self, request: str) -> bool:
        with self._transaction() as run:
            return bool(run("DELETE FROM twoefay_request WHERE request = ?", request).rowcount == 1)

    def has_seen(self, event: str) -> bool:
        return bool(self._column("SELECT event FROM twoefay_event WHERE event = ?", event))

    def see(self, event: str, now: int) -> None:
        self._delete_old("twoefay_event", now - EVENT_LIFE, "event")
        self._insert("INSERT INTO twoefay_event (event, at) VALUES (?, ?)", event, now)


class SQLiteStore(DatabaseStore):
    """A store in a file of SQLite, for a website on one machine.

    The path is absolute: started elsewhere, a website would find a new, empty store at a relative
    one, and take nobody for enrolled. Only the website's own account may read the file.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        if path == ":memory:":
            raise ValueError("each use opens the file again: take MemoryStore instead of :memory:")
        if not Path(path).is_absolute():
            raise ValueError("the path must be absolute: Path(__file__).with_name(…)")
        # Nobody else reads the open `k`s. A file that exists is not opened: closing it would end the
        # locks that SQLite has on it in this process.
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        super().__init__(lambda: sqlite3.connect(path, timeout=10), paramstyle="qmark")
