"""The example sites: a browser's requests, a real relay, and a real phone."""

import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from html.parser import HTMLParser
from http.cookies import SimpleCookie
from itertools import count
from threading import Barrier
from typing import Any
from urllib.parse import urlencode, urlsplit

import djangos
import pytest
from real import RealRelay

from twoefay import MemoryStore
from twoefay.operations import Operations

BROWSER = "Evil\u200b browser/1.0"
USERS = count()
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
    """The same requests for the test clients of three frameworks, with the cookies of one browser."""

    def __init__(self) -> None:
        self.cookies: dict[str, str] = {}

    def get(self, path: str, cookies: dict[str, str] | None = None) -> Any:
        return self._take(self.send("GET", path, None, self._header(cookies)))

    def post(self, path: str, form: dict[str, str], cookies: dict[str, str] | None = None) -> Any:
        """With `cookies`, a request that left before these were replaced."""
        return self._take(self.send("POST", path, form, self._header(cookies)))

    def send(self, method: str, path: str, form: dict[str, str] | None, cookie: str) -> Any:
        """The status, the fields, the text and the cookies of the answer."""
        raise NotImplementedError

    def _header(self, cookies: dict[str, str] | None) -> str:
        kept = self.cookies if cookies is None else cookies
        return "; ".join(f"{name}={value}" for name, value in kept.items())

    def _take(self, answer: Any) -> Any:
        status, headers, text, lines = answer
        for line in lines:
            ((name, morsel),) = SimpleCookie(line).items()
            ends = parsedate_to_datetime(morsel["expires"]) if morsel["expires"] else None
            if ends and ends < datetime.now(UTC):
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = morsel.value
        return status, headers, text


class Site:
    """An example site: its store, and browsers that know nothing of each other."""

    store: Any

    def browser(self) -> Browser:
        raise NotImplementedError


class FlaskSite(Site):
    def __init__(self, real: RealRelay, store: MemoryStore) -> None:
        from flask_site import create_app

        self.store, self.app = store, create_app(real.origin, str(real.directory), store)

    def browser(self) -> Browser:
        return FlaskBrowser(self.app)


class FlaskBrowser(Browser):
    def __init__(self, app: Any) -> None:
        super().__init__()
        self.client = app.test_client(use_cookies=False)

    def send(self, method: str, path: str, form: dict[str, str] | None, cookie: str) -> Any:
        fields = {"user-agent": BROWSER.encode().decode("latin-1"), "cookie": cookie}
        answer = self.client.open(
            path, method=method, data=form, headers=fields, base_url="https://testserver"
        )
        lines = answer.headers.getlist("set-cookie")
        return answer.status_code, answer.headers, answer.get_data(as_text=True), lines


class FastAPISite(Site):
    def __init__(self, real: RealRelay, store: MemoryStore) -> None:
        from fastapi_site import create_app
        from starlette.testclient import TestClient

        self.store = store
        app = create_app(real.origin, str(real.directory), store)
        # One event loop for all requests, as in a server: the client's connections belong to it.
        self.client = TestClient(app, "https://testserver", follow_redirects=False).__enter__()

    def browser(self) -> Browser:
        return FastAPIBrowser(self.client)


class FastAPIBrowser(Browser):
    def __init__(self, client: Any) -> None:
        super().__init__()
        self.client = client

    def send(self, method: str, path: str, form: dict[str, str] | None, cookie: str) -> Any:
        self.client.cookies.clear()
        fields = {"user-agent": BROWSER.encode(), "cookie": cookie.encode()}
        answer = self.client.request(method, path, data=form, headers=fields)
        return answer.status_code, answer.headers, answer.text, answer.headers.get_list("set-cookie")


class DjangoSite(Site):
    def __init__(self, real: RealRelay, store: MemoryStore) -> None:
        from django.conf import settings

        djangos.set_up(real.directory)
        from django.contrib.auth.models import User

        settings.TWOEFAY = {name: value for name, value in real.settings(store).items() if name != "store"}
        for name, password in PASSWORDS.items():
            if not User.objects.filter(username=f"{name}-django").exists():
                User.objects.create_user(f"{name}-django", password=password)
        from twoefay.django.store import DjangoStore

        self.store = DjangoStore()

    def browser(self) -> Browser:
        return DjangoBrowser()


class DjangoBrowser(Browser):
    def send(self, method: str, path: str, form: dict[str, str] | None, cookie: str) -> Any:
        from django.test import Client

        # The form of /login stands for any other one of the site, and has no token here.
        client = Client(enforce_csrf_checks=path != "/login")
        answer = client.generic(
            method,
            path,
            urlencode(form or {}),
            "application/x-www-form-urlencoded",
            headers={"user-agent": BROWSER, "cookie": cookie},
        )
        lines = [morsel.OutputString() for morsel in answer.cookies.values()]
        return answer.status_code, answer.headers, answer.content.decode(), lines


@pytest.fixture(params=["flask", "fastapi", "django"])
def site(request: pytest.FixtureRequest, real: RealRelay, monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip(request.param)
    kind = {"flask": FlaskSite, "fastapi": FastAPISite, "django": DjangoSite}[request.param]
    passwords = {f"{user}-{request.param}": password for user, password in PASSWORDS.items()}
    if request.param != "django":
        monkeypatch.setattr(__import__(f"{request.param}_site"), "PASSWORDS", passwords)
    return request.param, kind(real, MemoryStore())


@pytest.fixture
def waiting(site: Any, real: RealRelay, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A site, a browser whose login the phone has approved, and the fields of its page."""
    name, place = site
    asked = watch(monkeypatch)
    user = f"{name}-{next(USERS)}"
    add_user(name, user)
    browser = place.browser()
    form = {"username": user, "password": "correct horse"}
    real.enrol(uri_of(name, browser, form, monkeypatch), f"phone-of-{user}")
    browser.post("/login", form)
    number, fields = pending_of(browser)
    assert real.answer("approve", asked[-1], number, f"phone-of-{user}") == 0
    return place, browser, fields


def add_user(site: str, user: str) -> None:
    if site == "django":
        from django.contrib.auth.models import User

        User.objects.create_user(user, password="correct horse")
    else:
        sys.modules[f"{site}_site"].PASSWORDS[user] = "correct horse"  # type: ignore[attr-defined]


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
    name, browser = site[0], site[1].browser()
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

    assert browser.post("/second-factor/", {key: "x" for key in fields})[0] == 403
    assert "Welcome" not in browser.get("/")[2]
    status, headers, _ = browser.post("/second-factor/", fields)
    assert (status, headers["location"]) in ((302, "/"), (303, "/"))
    assert f"Welcome, ada-{name}" in browser.get("/")[2]


def test_unbound_phone_makes_no_room_for_another(
    site: Any, real: RealRelay, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, browser = site[0], site[1].browser()
    form = {"username": f"cleo-{name}", "password": "open sesame"}
    real.enrol(uri_of(name, browser, form, monkeypatch), f"phone-of-cleo-{name}")
    assert browser.post("/login", form)[0] in (302, 303)
    store = site[1].store
    (device,) = store.pins(form["username"])
    store.unpin_by_token(store.token(form["username"]), device)  # as the relay's webhook does
    status, _, page = browser.post("/login", form)
    assert status == 403 and "help desk" in page and "<svg" not in page


def test_denied(site: Any, real: RealRelay, monkeypatch: pytest.MonkeyPatch) -> None:
    name, browser = site[0], site[1].browser()
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


def goes_on(answer: Any) -> bool:
    """Whether the browser is sent on to the site."""
    return answer[0] in (302, 303) and answer[1]["location"] == "/"


def test_second_submission_goes_on(waiting: Any) -> None:
    _, browser, fields = waiting
    clicked = dict(browser.cookies)
    assert goes_on(browser.post("/second-factor/", fields))
    # A second click and polls that left before the answer to the first click arrived.
    assert goes_on(browser.post("/second-factor/", fields, clicked))
    assert browser.get("/second-factor/state", clicked)[0] == 200
    browser.get("/second-factor/", clicked)
    assert "Welcome" in browser.get("/")[2]
    # A second click after the answer to the first one, as from another tab.
    assert goes_on(browser.post("/second-factor/", fields))
    assert json.loads(browser.get("/second-factor/state")[2]) == {"ended": True}
    assert goes_on(browser.get("/second-factor/"))
    assert "Welcome" in browser.get("/")[2]


def test_second_submission_lets_in_nobody(waiting: Any) -> None:
    place, browser, fields = waiting
    stolen = dict(browser.cookies)
    assert goes_on(browser.post("/second-factor/", fields))
    for cookies in (stolen, {}):
        stranger = place.browser()
        stranger.cookies = dict(cookies)
        assert goes_on(stranger.post("/second-factor/", fields))
        assert "Welcome" not in stranger.get("/")[2]
    assert "Welcome" in browser.get("/")[2]


def test_simultaneous_submissions_let_in_once(waiting: Any) -> None:
    place, browser, fields = waiting
    browsers = [place.browser() for _ in range(4)]
    start = Barrier(len(browsers))

    def submit(other: Browser) -> bool:
        other.cookies = dict(browser.cookies)
        start.wait()
        assert goes_on(other.post("/second-factor/", fields))
        return "Welcome" in other.get("/")[2]

    with ThreadPoolExecutor(len(browsers)) as pool:
        assert sorted(pool.map(submit, browsers)) == [False, False, False, True]


@pytest.mark.parametrize("site", ["flask"], indirect=True)  # no other sends it with each answer
def test_answer_of_permanent_session_sets_no_old_cookie(waiting: Any) -> None:
    import flask

    place, browser, fields = waiting

    def stay() -> None:
        flask.session.permanent = True

    place.app.before_request_funcs.setdefault(None, []).append(stay)
    clicked = dict(browser.cookies)
    assert goes_on(browser.post("/second-factor/", fields))
    assert goes_on(browser.post("/second-factor/", fields, clicked))
    assert "Welcome" in browser.get("/")[2]


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
