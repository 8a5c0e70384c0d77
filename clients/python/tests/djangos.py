"""The example site for Django, whose settings a process has only once, and further databases."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))


class Router:
    """Sends all queries to one database, which a test chooses."""

    chosen = "default"

    def db_for_read(self, *_: object, **__: object) -> str:
        return Router.chosen

    db_for_write = db_for_read


def set_up(files: Path) -> None:
    """The first call decides where the files are."""
    pytest.importorskip("django")
    from django.conf import settings

    if settings.configured:
        return
    import django
    import django_site

    django_site.configure("https://localhost", str(files), DATABASE_ROUTERS=["djangos.Router"])
    django.setup()
    django_site.urlpatterns = django_site.urls()
    migrate("default")


def add_database(alias: str, connect: Callable[[], Any]) -> None:
    """A database of its own on a server: Django's tables have the names of those of DatabaseStore."""
    from django.db import connections

    if alias in connections.settings:
        return
    connection = connect()
    if alias == "postgresql":
        connection.autocommit = True
        known = connection.info
        database = {"HOST": known.host, "PORT": known.port, "USER": known.user, "PASSWORD": known.password}
    else:
        import pymysql

        pymysql.version_info = (2, 2, 8, "final", 0)  # Django asks for that of mysqlclient
        pymysql.install_as_MySQLdb()
        database = {
            "HOST": connection.unix_socket or connection.host,
            "PORT": connection.port,
            "USER": connection.user.decode(),
            "PASSWORD": connection.password.decode(),
        }
    connection.cursor().execute("DROP DATABASE IF EXISTS twoefay_django")
    connection.cursor().execute("CREATE DATABASE twoefay_django")
    connection.close()
    database |= {"ENGINE": f"django.db.backends.{alias}", "NAME": "twoefay_django"}
    made = connections.configure_settings({"default": {}, alias: database})
    connections.settings[alias] = made[alias]
    migrate(alias)


def migrate(alias: str) -> None:
    from django.core.management import call_command

    with database(alias):
        call_command("migrate", verbosity=0, database=alias)


@contextmanager
def database(alias: str) -> Iterator[None]:
    Router.chosen = alias
    try:
        yield
    finally:
        close_all()
        Router.chosen = "default"


def close_all() -> None:
    """Closes the connections of this thread."""
    if "django" in sys.modules:
        from django.db import connections

        connections.close_all()
