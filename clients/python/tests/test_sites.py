"""The example sites: a browser's requests, a real relay, and a real phone."""

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from real import RealRelay

from twoefay import MemoryStore
from twoefay.operations import Operations

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

BROWSER = "Evil\u200b browser/1.0"
PASSWORDS = {"ada": "correct horse", "bob": "battery staple", "cleo": "open sesame"}


class Links(HTMLParser):
    """Collects what a page loads from elsewhere, and its fields."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.fields: dict[str, str] = {}
        self.scripts: list[str | None] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.loads += [value for name in ("src", "href", "srcset") if (value := named.get(name))]
        assert not any(name.startswith("on") or name == "style" for name in named)
        if tag == "input" and named.get("value"):
            self.fields[str(named["name"])] = str(named["value"])
        if tag in ("script", "style"):
            self.scripts.append(named.get("nonce"))


class Browser:
    """The same requests for the test clients of three frameworks."""

    store: Any

    def get(self, path: str) -> Any:
        raise NotImplementedError

    def post(self, path: str, form: dict[str, str]) -> Any:
        raise NotImplementedError


class FlaskBrowser(Browser):
    def __init__(self, real: RealRelay, store: MemoryStore) -> None:
        from flask_site import create_app

        self.store = store
        self.client = create_app(real.origin, str(real.directory), store).test_client()

    def get(self, path: str) -> Any:
        return self._plain(self.client.get(path, base_url="https://testserver"))

    def post(self, path: str, form: dict[str, str]) -> Any:
        agent = {"user-agent": BROWSER.encode().decode("latin-1")}
        return self._plain(self.client.post(path, data=form, base_url="https://testserver", headers=agent))

    def _plain(self, answer: Any) -> Any:
        return answer.status_code, answer.headers, answer.get_data(as_text=True)


class FastAPIBrowser(Browser):
    def __init__(self, real: RealRelay, store: MemoryStore) -> None:
        from fastapi_site import create_app
        from starlette.testclient import TestClient

        self.store = store
        app = create_app(real.origin, str(real.directory), store)
        # One event loop for all requests, as in a server: the client's connections belong to it.
        self.client = TestClient(app, "https://testserver", follow_redirects=False).__enter__()

    def get(self, path: str) -> Any:
        return self._plain(self.client.get(path))

    def post(self, path: str, form: dict[str, str]) -> Any:
        return self._plain(self.client.post(path, data=form, headers={"user-agent": BROWSER.encode()}))

    def _plain(self, answer: Any) -> Any:
        return answer.status_code, answer.headers, answer.text


class DjangoBrowser(Browser):
    def __init__(self, real: RealRelay, store: MemoryStore) -> None:
        from django.conf import settings

        if not settings.configured:
            import django
            import django_site

            django_site.configure(real.origin, str(real.directory))
            django.setup()
            django_site.urlpatterns = django_site.urls()
            from django.core.management import call_command

            call_command("migrate", verbosity=0)
            from django.contrib.auth.models import User

            for name, password in PASSWORDS.items():
                User.objects.create_user(f"{name}-django", password=password)
        from django.test import Client

        from twoefay.django.store import DjangoStore

        self.store = DjangoStore()
        self.client = Client(enforce_csrf_checks=False)

    def get(self, path: str) -> Any:
        return self._plain(self.client.get(path))

    def post(self, path: str, form: dict[str, str]) -> Any:
        return self._plain(self.client.post(path, form, headers={"user-agent": BROWSER}))

    def _plain(self, answer: Any) -> Any:
        return answer.status_code, answer.headers, answer.content.decode()


@pytest.fixture(params=["flask", "fastapi", "django"])
def site(request: pytest.FixtureRequest, real: RealRelay, monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip(request.param)
    kind = {"flask": FlaskBrowser, "fastapi": FastAPIBrowser, "django": DjangoBrowser}[request.param]
    passwords = {f"{user}-{request.param}": password for user, password in PASSWORDS.items()}
    if request.param != "django":
        monkeypatch.setattr(__import__(f"{request.param}_site"), "PASSWORDS", passwords)
    return request.param, kind(real, MemoryStore())


def uri_of(site: str, browser: Browser, form: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> str:
    """The first login shows a QR code; the test reads its text where the client draws it."""
    import twoefay.enrolment

    drawn: list[str] = []
    make = twoefay.enrolment.segno.make

    def spy(text: str, **options: Any) -> Any:
        drawn.append(text)
        return make(text, **options)

    monkeypatch.setattr(twoefay.enrolment.segno, "make", spy)
    status, headers, page = browser.post("/login", form)
    assert status == 200 and "<svg" in page and Links(page).loads == []
    assert headers["cache-control"] == "no-store"
    return drawn[0]


def pending_of(browser: Browser) -> tuple[str, dict[str, str]]:
    status, headers, page = browser.get("/second-factor/")
    links = Links(page)
    nonce = re.search("script-src 'nonce-([^']+)'", headers["content-security-policy"])
    assert status == 200 and nonce and "default-src 'none'" in headers["content-security-policy"]
    assert links.loads == [] and links.scripts == [nonce[1], nonce[1]]
    number = re.search(r'class="number">([0-9]+)<', page)
    assert number
    return number[1], links.fields


def test_log_in(site: Any, real: RealRelay, monkeypatch: pytest.MonkeyPatch) -> None:
    name, browser = site
    asked = watch(monkeypatch)
    phone = f"phone-{name}"
    form = {"username": f"ada-{name}", "password": "correct horse"}
    uri_of(name, browser, form, monkeypatch)  # the user closes the page, and gets another code
    real.enrol(uri_of(name, browser, form, monkeypatch), phone)

    assert browser.post("/login", form | {"password": "wrong"})[0] == 403
    status, headers, _ = browser.post("/login", form)
    assert status in (302, 303) and urlsplit(headers["location"]).path == "/second-factor/"
    number, fields = pending_of(browser)
    assert "Welcome" not in browser.get("/")[2]
    assert json.loads(browser.get("/second-factor/state")[2]) == {"ended": False}
    assert browser.post("/second-factor/", fields)[0] == 200  # too early: the page stays
    assert real.answer("approve", asked[-1], number, phone) == 0
    assert json.loads(browser.get("/second-factor/state")[2]) == {"ended": True}
    assert "Welcome" not in browser.get("/")[2]  # only the POST lets in

    forged = {key: "x" for key in fields}
    if name != "django":  # Django's own middleware does this, and its test client switches that off
        assert browser.post("/second-factor/", forged)[0] == 403
        assert browser.post("/login", form)[0] == 303
        number, fields = pending_of(browser)
        assert real.answer("approve", asked[-1], number, phone) == 0
    status, headers, _ = browser.post("/second-factor/", fields)
    assert (status, headers["location"]) in ((302, "/"), (303, "/"))
    assert f"Welcome, ada-{name}" in browser.get("/")[2]


def test_unbound_phone_makes_no_room_for_another(
    site: Any, real: RealRelay, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, browser = site
    form = {"username": f"cleo-{name}", "password": "open sesame"}
    real.enrol(uri_of(name, browser, form, monkeypatch), f"phone-of-cleo-{name}")
    assert browser.post("/login", form)[0] in (302, 303)
    store = browser.store
    (device,) = store.pins(form["username"])
    store.unpin_by_token(store.token(form["username"]), device)  # as the relay's webhook does
    status, _, page = browser.post("/login", form)
    assert status == 403 and "help desk" in page and "<svg" not in page


def test_denied(site: Any, real: RealRelay, monkeypatch: pytest.MonkeyPatch) -> None:
    name, browser = site
    asked = watch(monkeypatch)
    phone = f"phone-of-bob-{name}"
    form = {"username": f"bob-{name}", "password": "battery staple"}
    real.enrol(uri_of(name, browser, form, monkeypatch), phone)
    browser.post("/login", form)
    _, fields = pending_of(browser)
    assert real.answer("deny", asked[-1], None, phone) == 0
    status, _, page = browser.post("/second-factor/", fields)
    assert status == 403 and "not approved" in page
    assert "Welcome" not in browser.get("/")[2]


def watch(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Notes the challenges, which the pages do not show. Both clients share the operations."""
    asked: list[str] = []
    ask = Operations.ask

    def noting(self: Operations, *values: Any, **named: Any) -> Any:
        login = yield from ask(self, *values, **named)
        asked.append(login.challenge)
        return login

    monkeypatch.setattr(Operations, "ask", noting)
    return asked
