"""All stores keep the same promises."""

import secrets
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier
from typing import Any

import databases
import djangos
import pytest

from twoefay import DatabaseStore, MemoryStore, SQLiteStore, Store

KEY = {"kty": "EC", "crv": "P-256", "x": "x", "y": "y"}
NOW = 1_795_334_400
OTHER = KEY | {"x": "z"}
LONG_KEY = KEY | {"x": "x" * 43, "y": "y" * 43}
WEB = LONG_KEY | {
    "app": f"https://{'a' * 120}",
    "webauthn": {"rp": "a" * 120, "id": "A" * 256, "jwk": LONG_KEY},
}
"""The record of a web phone, each text as long as it can be."""
K = b"k" * 32


@pytest.fixture(scope="session")
def servers() -> Iterator[dict[str, Any]]:
    """The arguments with which the tests connect to each database server; None if it is missing."""
    with databases.postgresql() as postgresql, databases.mysql() as mysql:
        yield {"postgresql": postgresql, "mysql": mysql}


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("django")


KINDS = ["memory", "sqlite", "dbapi", "postgresql", "mysql", "django", "django-postgresql", "django-mysql"]


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    kind, _, server = request.param.partition("-")
    match kind:
        case "memory":
            yield MemoryStore()
        case "sqlite":
            yield SQLiteStore(str(tmp_path / "store.db"))
        case "dbapi":
            yield DatabaseStore(
                lambda: sqlite3.connect(tmp_path / "other.db", timeout=60), paramstyle="qmark"
            )
        case "django":
            djangos.set_up(request.getfixturevalue("files"))
            if server:
                djangos.add_database(server, connected(server, request.getfixturevalue("servers")))
            with djangos.database(server or "default"):
                from twoefay.django.store import DjangoStore

                yield DjangoStore()
        case _:
            yield DatabaseStore(connected(kind, request.getfixturevalue("servers")))


def connected(server: str, servers: dict[str, Any]) -> Callable[[], Any]:
    if servers[server] is None:
        pytest.skip(f"{server} is not installed, and TWOEFAY_TEST_{server.upper()} is not set")
    if server == "postgresql":
        psycopg = pytest.importorskip("psycopg")
        return lambda: psycopg.connect(servers[server])
    pymysql = pytest.importorskip("pymysql")
    return lambda: pymysql.connect(**servers[server])


def test_request_is_spent_once(store: Store) -> None:
    store.open("r1", 1000)
    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(store.spend, ["r1"] * 8)) == [False] * 7 + [True]
    assert not store.spend("r1") and not store.spend("never")


def test_old_requests_are_deleted(store: Store) -> None:
    store.open("old", 1000)
    store.open("new", 1000 + 86_402)
    assert not store.spend("old") and store.spend("new")


def test_pinned_key_is_never_replaced(store: Store) -> None:
    store.forget("ada")
    assert pin(store, "ada", "d1") and not pin(store, "ada", "d1", OTHER)
    assert store.pins("ada") == {"d1": KEY}
    store.unpin("ada", "d1")
    store.unpin("ada", "d1")
    assert store.pins("ada") == {}
    store.forget("ada")


def test_record_of_a_web_phone_is_returned_whole(store: Store) -> None:
    store.forget("ada")
    assert pin(store, "ada", "d1", WEB) and not pin(store, "ada", "d1")
    assert store.pins("ada") == {"d1": WEB}
    store.forget("ada")


def pin(store: Store, username: str, device: str, jwk: dict[str, Any] = KEY) -> bool:
    store.add_secret(username, k := secrets.token_bytes(32), NOW)
    return store.pin(username, device, jwk, k)


def test_secret_pins_one_phone(store: Store) -> None:
    store.forget("ada")
    store.add_secret("ada", b"k" * 32, NOW)
    with ThreadPoolExecutor(8) as pool:
        pins = pool.map(lambda i: store.pin("ada", f"d{i}", KEY, b"k" * 32), range(8))
        assert sorted(pins) == [False] * 7 + [True]
    assert len(store.pins("ada")) == 1
    store.forget("ada")


def test_users_at_once_do_not_disturb_each_other(store: Store) -> None:
    """Also in MySQL, whose transactions lock gaps between rows and could wait for each other."""
    threads, rounds = 4, 2  # SQLite has one writer at a time
    start = Barrier(threads)

    def live(thread: int) -> int:
        start.wait()
        for turn in range(rounds):
            user = secrets.token_hex(8)
            store.add_user(user, f"token of {user}")
            assert pin(store, user, "d1") and not pin(store, user, "d1", OTHER)
            store.open(user, NOW + turn * 90_000)  # old requests of others are deleted meanwhile
            assert store.spend(user) or turn < rounds - 1
            store.see(user, NOW + turn * 90_000)
            store.unpin_by_token(f"token of {user}", "d1")
            assert store.pins(user) == {} and store.was_pinned(user)
            store.forget(user)
        djangos.close_all()
        return thread

    with ThreadPoolExecutor(threads) as pool:
        assert list(pool.map(live, range(threads))) == list(range(threads))


def test_same_user_at_once(store: Store) -> None:
    store.forget("ada")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: store.add_user("ada", f"t{i}"), range(16)))
        list(pool.map(lambda i: store.add_secret("ada", bytes([i]), NOW), range(16)))
    assert str(store.token("ada")).startswith("t") and len(store.secrets("ada", NOW)) == 16
    store.forget("ada")


@pytest.mark.parametrize("server", ["sqlite", "postgresql", "mysql"])
def test_tables_are_created_by_many_at_once(
    server: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    def sqlite() -> Any:
        return sqlite3.connect(tmp_path / "new.db", timeout=60)

    connect = sqlite if server == "sqlite" else connected(server, request.getfixturevalue("servers"))
    style = "qmark" if server == "sqlite" else "format"
    first = connect()
    for table in ("user", "secret", "phone", "request", "event"):
        first.cursor().execute(f"DROP TABLE IF EXISTS twoefay_{table}")
    first.commit()
    first.close()
    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(lambda _: DatabaseStore(connect, style), range(8)))
    assert all(store.token("ada") is None for store in stores)


def test_open_enrolments_of_one_user_pin_one_phone(store: Store) -> None:
    store.forget("ada")
    store.add_user("ada", "t1")
    for i in range(8):
        store.add_secret("ada", bytes([i]), NOW)
    with ThreadPoolExecutor(8) as pool:
        pins = pool.map(lambda i: store.pin("ada", f"d{i}", KEY, bytes([i])), range(8))
        assert sorted(pins) == [False] * 7 + [True]
    assert len(store.pins("ada")) == 1 and store.secrets("ada", NOW) == []
    store.forget("ada")


def test_pin_closes_all_open_enrolments(store: Store) -> None:
    for name in ("ada", "bob"):
        store.forget(name)
        store.add_secret(name, f"1 {name}".encode(), NOW)
        store.add_secret(name, f"2 {name}".encode(), NOW)
    assert not store.pin("ada", "d1", KEY, b"1 bob")
    assert store.pin("ada", "d1", KEY, b"1 ada") and not store.pin("ada", "d2", KEY, b"2 ada")
    assert store.secrets("ada", NOW) == [] and len(store.secrets("bob", NOW)) == 2
    assert list(store.pins("ada")) == ["d1"]
    # A key that is there already uses up no secret: the phone that has it is still to come.
    store.add_secret("ada", b"3 ada", NOW)
    assert not store.pin("ada", "d1", OTHER, b"3 ada") and store.secrets("ada", NOW) == [b"3 ada"]
    store.forget("ada")
    store.forget("bob")


def test_old_secrets_do_not_count(store: Store) -> None:
    store.forget("ada")
    store.add_secret("ada", b"k", NOW)
    assert store.secrets("ada", NOW + 86_399) == [b"k"] and store.secrets("ada", NOW + 86_400) == []
    store.forget("ada")


def test_unpinned_phone_leaves_a_trace(store: Store) -> None:
    store.forget("ada")
    assert not store.was_pinned("ada")
    pin(store, "ada", "d1")
    store.unpin("ada", "d1")
    assert store.pins("ada") == {} and store.was_pinned("ada") and not store.was_pinned("bob")
    pin(store, "ada", "d1", OTHER)
    assert store.pins("ada") == {}  # a lost phone never comes back
    pin(store, "ada", "d2")
    assert store.pins("ada") == {"d2": KEY}
    store.forget("ada")
    assert not store.was_pinned("ada")


def test_unpinned_phone_is_not_pinned_later(store: Store) -> None:
    """A phone that the website unbinds may have read a code, and not be pinned yet."""
    store.forget("ada")
    store.add_user("ada", "token of ada")
    for unpin in (
        lambda: store.unpin("ada", "d1"),
        lambda: store.unpin_by_token("token of ada", "d2"),
    ):
        store.add_secret("ada", K, NOW)
        unpin()
        assert store.secrets("ada", NOW) == []
    # The relay reports an unbinding that the website began: a new code must outlive that.
    pin(store, "ada", "d3")
    store.unpin("ada", "d3")
    store.add_secret("ada", K, NOW)
    store.unpin_by_token("token of ada", "d3")
    assert store.secrets("ada", NOW) == [K]
    store.forget("ada")


def test_only_the_users_own_phone_is_unpinned(store: Store) -> None:
    for name in ("ada", "bob"):
        store.forget(name)
        store.add_user(name, f"token of {name}")
        pin(store, name, "d1")
    store.unpin("bob", "d1")
    store.unpin_by_token("token of nobody", "d1")
    assert store.pins("ada") == {"d1": KEY} and store.pins("bob") == {}
    store.unpin_by_token("token of ada", "d1")
    assert store.pins("ada") == {}
    store.forget("ada")
    store.forget("bob")


@pytest.mark.parametrize("other", ["Ada", "ada ", "áda", "ada\0"])
def test_names_are_compared_exactly(store: Store, other: str) -> None:
    store.forget("ada")
    store.add_user("ada", "t1")
    pin(store, "ada", "d1")
    assert store.pins(other) == {} and store.token(other) is None
    store.forget(other)
    assert store.pins("ada") == {"d1": KEY} and store.token("ada") == "t1"
    store.add_user("ada", "t2")
    assert store.token("ada") == "t2"
    store.forget("ada")
    assert store.pins("ada") == {} and store.token("ada") is None and store.secrets("ada", NOW) == []


def test_events_are_remembered(store: Store) -> None:
    assert not store.has_seen("e1")
    store.see("e1", 1000)
    store.see("e1", 1000)
    assert store.has_seen("e1")
    store.see("e2", 1000 + 31 * 86_400)
    assert not store.has_seen("e1") and store.has_seen("e2")


def test_other_errors_are_not_hidden(tmp_path: Path) -> None:
    store = DatabaseStore(lambda: sqlite3.connect(tmp_path / "x.db"), paramstyle="qmark", create=False)
    with pytest.raises(sqlite3.OperationalError):
        store.see("e", 1)


def test_a_call_deletes_some_old_rows_only(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "store.db")
    for number in range(150):
        store.open(f"r{number}", 1)
    later = 3 * 86_400
    store.open("new", later)
    with closing(sqlite3.connect(tmp_path / "store.db")) as database:
        assert database.execute("SELECT count(*) FROM twoefay_request").fetchall() == [(51,)]
        store.open("newer", later)
        assert database.execute("SELECT count(*) FROM twoefay_request").fetchall() == [(2,)]


def test_file_does_not_depend_on_where_the_website_starts(tmp_path: Path) -> None:
    for path in ("store.db", "./store.db", Path("store.db")):
        with pytest.raises(ValueError, match="absolute"):
            SQLiteStore(path)
    SQLiteStore(tmp_path / "store.db")
    assert (tmp_path / "store.db").stat().st_mode & 0o077 == 0


def test_another_store_of_a_file_keeps_its_locks(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SQLiteStore(path)
    store.see("first", 0)
    write = "INSERT INTO twoefay_event (event, at) VALUES ('theirs', 1)"
    # Locks of SQLite count between processes.
    other = f"import sqlite3; d = sqlite3.connect({str(path)!r}, timeout=0); d.execute({write!r}); d.commit()"
    with closing(sqlite3.connect(path)) as database:
        database.execute("INSERT INTO twoefay_event (event, at) VALUES ('ours', 1)")
        SQLiteStore(path)
        run = subprocess.run([sys.executable, "-c", other], capture_output=True, text=True, check=False)
        assert "database is locked" in run.stderr
        database.commit()
    assert store.has_seen("ours") and not store.has_seen("theirs")


def test_memory_of_sqlite_is_refused() -> None:
    with pytest.raises(ValueError, match="MemoryStore"):
        SQLiteStore(":memory:")
