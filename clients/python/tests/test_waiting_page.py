"""The waiting page in Chromium: its script submits once, whatever the visitor clicks."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from twoefay import Login, pages
from twoefay.pages import Page, Pending

TOKEN = "t" * 24
FORM = f"form_token={TOKEN}&code="
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


class Chromium:
    """A browser that is driven over a pipe, by the DevTools protocol."""

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM
        read, self._write = os.pipe()
        self._read, write = os.pipe()
        # The protocol has the descriptors 3 and 4, which a shell can name.
        command = f'exec "$0" "$@" 3<&{read} 4>&{write}'
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        options += ["--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            ["bash", "-c", command, CHROMIUM, *options], pass_fds=(read, write), stderr=subprocess.DEVNULL
        )
        os.close(read)
        os.close(write)
        self._input, self._number, self._session = b"", 0, ""
        self._events: list[str] = []  # those that arrived before an answer
        pages = self.call("Target.getTargets")["targetInfos"]
        target = next(page["targetId"] for page in pages if page["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        self.call("Page.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            self._events.append(str(answer.get("method")))
        assert "error" not in answer, answer
        return answer["result"]

    def until(self, event: str) -> None:
        while event not in self._events:
            self._events.append(str(self._next().get("method")))
        self._events.remove(event)

    def run(self, script: str) -> Any:
        result = self.call("Runtime.evaluate", expression=script, userGesture=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def _next(self) -> Any:
        while b"\0" not in self._input:
            part = os.read(self._read, 65_536)
            assert part, "Chromium has ended"
            self._input += part
        message, _, self._input = self._input.partition(b"\0")
        return json.loads(message)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._read)
        os.close(self._write)


class Site:
    """A server with the page: it notes the forms, and answers a POST when the test says so."""

    def __init__(self) -> None:
        from jinja2 import Environment, FileSystemLoader

        self.forms: list[str] = []
        self.posted, self.clicked, self.answer = Event(), Event(), Event()
        self.state: Future[bool] = Future()
        template = Environment(loader=FileSystemLoader(pages.TEMPLATES)).get_template(pages.TEMPLATE)
        pending = Pending(Login("c" * 32, "47", 0, {}), TOKEN)
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path == "/state":
                    return self.reply("application/json", json.dumps({"ended": site.state.result()}), {})
                if self.path == "/clicked":
                    site.clicked.set()
                nonce = pages.new_nonce()
                context = pages.context(pending, Page(), nonce, "/state", True)
                self.reply("text/html", template.render(context), pages.headers(nonce, Page()))

            def do_POST(self) -> None:
                site.forms.append(self.rfile.read(int(self.headers["content-length"])).decode())
                if site.forms != [FORM]:  # the test has failed: let it end
                    site.clicked.set()
                    site.answer.set()
                site.posted.set()
                site.answer.wait()
                self.reply("text/html", "<title>Welcome</title>", {})

            def reply(self, kind: str, text: str, fields: dict[str, str]) -> None:
                self.send_response(200)
                for name, value in {"content-type": kind, **fields}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self.server.server_port}/"

    def end(self) -> None:
        self.answer.set()
        if not self.state.done():
            self.state.set_result(False)
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def page(tmp_path: Path) -> Iterator[tuple[Site, Chromium]]:
    pytest.importorskip("jinja2")
    if CHROMIUM is None:
        pytest.skip("no chromium")
    site, browser = Site(), Chromium(tmp_path)
    try:
        browser.call("Page.navigate", url=site.address)
        browser.until("Page.loadEventFired")
        yield site, browser
    finally:
        browser.end()
        site.end()


# Clicks over and over while the field is empty, and tells the server after twenty times.
CLICKS = """
let clicks = 0;
setInterval(() => {
  if (document.querySelector("[name=code]").value !== "") return;
  document.querySelector("button").click();
  if (++clicks === 20) fetch("/clicked");
}, 5);
"""


def finish(site: Site, browser: Chromium) -> str:
    """Answers the POST after many clicks, and returns the title of the page that follows."""
    site.posted.wait()
    site.clicked.wait()
    assert site.forms == [FORM]
    site.answer.set()
    browser.until("Page.loadEventFired")
    return str(browser.run("document.title"))


def test_many_clicks_submit_once(page: tuple[Site, Chromium]) -> None:
    site, browser = page
    browser.run(CLICKS)
    site.posted.wait()
    site.state.set_result(True)  # a poll that was on its way is answered now
    assert finish(site, browser) == "Welcome" and site.forms == [FORM]


def test_page_submits_by_itself_without_half_a_code(page: tuple[Site, Chromium]) -> None:
    site, browser = page
    browser.run("document.querySelector('[name=code]').value = '123';" + CLICKS)
    site.state.set_result(True)
    assert finish(site, browser) == "Welcome" and site.forms == [FORM]
