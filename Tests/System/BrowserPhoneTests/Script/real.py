"""real.py PROGRAMS: the app in Chromium with the relay itself, behind a server that passes its requests on.

PROGRAMS is the directory of twoefay and twoefayd. The packages of dev/need must be in PYTHONPATH. Until the relay serves
the app and takes assertions, its phones approve without the check of the owner.
"""

import http.client
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import traceback
from urllib.parse import parse_qsl

from browser import Browser
from server import App, make_certificate, serve
from statements import spki_pin
from steps import link, open_request, whole

POLICIES = {"answers": "signed", "factors": "push,totp", "phone-codes": "again", "pin": "optional", "guesses": "100"}
PASSED_ON = ("DPoP-Nonce", "WWW-Authenticate", "Retry-After", "X-MessageCount", "Preference-Applied")


class RealRelay:
    """A relay in its own directory, whose origin is that of the server before it."""

    def __init__(self, programs, directory, origin):
        self.programs, self.directory, self.at = programs, directory, origin
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.settings = os.path.join(directory, "twoefay.yaml")
        self.tool("init", directory, "--listen", f"127.0.0.1:{self.port}")
        with open(self.settings) as file:
            text, count = re.subn(r"^origin: .*$", f"origin: {origin}", file.read(), flags=re.MULTILINE)
        assert count == 1
        with open(self.settings, "w") as file:
            file.write(text)
        self.tool("--config", self.settings, "website", "add", "shop", "--out", directory,
                  *(word for name, value in POLICIES.items() for word in (f"--{name}", value)))
        self.log = open(os.path.join(directory, "log"), "w")
        self.process = subprocess.Popen(
            [os.path.join(programs, "twoefayd"), "--config", self.settings], stdin=subprocess.DEVNULL, stderr=self.log)
        self.context = ssl.create_default_context(cafile=os.path.join(directory, "ca.pem"))
        self.website = ssl.create_default_context(cafile=os.path.join(directory, "ca.pem"))
        self.website.load_cert_chain(os.path.join(directory, "shop.pem"), os.path.join(directory, "shop.key"))
        while True:
            try:
                with socket.create_connection(("127.0.0.1", self.port)):
                    break
            except ConnectionRefusedError:
                assert self.process.poll() is None, "the relay does not start"
                time.sleep(0.05)

    def tool(self, *words):
        subprocess.run([os.path.join(self.programs, "twoefay"), *words], check=True, stdout=subprocess.DEVNULL)

    def end(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()

    def now(self):
        return time.time()

    def send(self, context, method, path, fields, body):
        connection = http.client.HTTPSConnection("localhost", self.port, context=context)
        fields = {**fields, "host": self.at.removeprefix("https://")}
        connection.request(method, path, json.dumps(body) if method == "POST" else None, fields)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, json.loads(content) if content else None, answer.headers

    def answer(self, method, path, fields, body):
        """Passes a request of the app on: see `Relay.answer`."""
        passed = {name: value for name, value in fields.items()
                  if name in ("dpop", "prefer", "nonce", "content-type", "accept-user-language")}
        status, found, headers = self.send(self.context, method, path, passed, body)
        if status == 400:
            print(f"refused: {method} {path}: {found}", flush=True)
        return status, found, {name: headers[name] for name in PASSED_ON if headers[name]}

    def ask(self, method, path, body):
        """A request of the website, with whatever answer: (status, object)."""
        return self.send(self.website, method, path, {"content-type": "application/json"}, body)[:2]

    def call(self, method, path, body):
        status, found = self.ask(method, path, body)
        assert status < 300, (method, path, status, found)
        return found

    def login(self, username, **more):
        return self.call("POST", "/login", {"username": username, **more})


def bound(browser, server, uri):
    """Opens the link of an activation URI of the relay, and agrees."""
    values = dict(parse_qsl(uri.split("?", 1)[1]))
    browser.open(link(server, {**values, "at": server.origin}))
    browser.heading("Add this phone?")
    browser.press("Add this phone")


def settings(browser):
    browser.tab("settings")
    browser.heading("Settings")
    browser.element("#screen .entry").click()


def answer(browser, opened, number, heading, word="Approve", pin=None):
    open_request(browser, opened["challenge"])
    finish(browser, number, heading, word, pin)


def finish(browser, number, heading, word="Approve", pin=None):
    whole(browser)
    if number is not None:
        browser.fill("Number on the website", number)
    if pin is not None:
        browser.fill("PIN", pin)
    browser.press(word)
    browser.heading(heading)
    browser.press("Done")


def logins(browser, server, relay):
    bound(browser, server, relay.call("POST", "/register", {"username": "alice"})["activation"]["uri"])
    browser.heading("Phone added")
    browser.press("I have written it down")
    if browser.named("Not now"):
        browser.press("Not now")
    browser.heading("Requests")
    print("ok: the phone is bound", flush=True)
    opened = relay.login("alice", service="members", action="pay", request="abc",
                         details=[{"label": "amount", "value": "12.00 EUR"}, {"label": "to", "value": "Zoë Müller"}])
    answer(browser, opened, opened["number"], "Approved")
    print("ok: a request is approved", flush=True)
    opened = relay.login("alice")
    number = opened["number"]
    answer(browser, opened, str((int(number) + 1) % 10 ** len(number)).zfill(len(number)), "Not approved")
    answer(browser, relay.login("alice"), None, "Rejected", "Reject")
    print("ok: a wrong number and a denial", flush=True)


def change_pin(browser, how, **fields):
    settings(browser)
    browser.press("Set or change the PIN")
    if how:
        browser.press(how)
    for name, text in fields.items():
        browser.fill(name.replace("_", " "), text)
    browser.press("Continue")
    browser.heading("PIN stored")


def codes_and_pin(browser, relay):
    settings(browser)
    browser.press("Get codes")
    browser.heading("Codes")
    code = browser.until(lambda: browser.element(".otp").text.replace(" ", ""), "the code")
    assert len(code) == 6 and code.isdigit()
    print("ok: codes of the phone", flush=True)
    change_pin(browser, None, New_PIN="2580", New_PIN_again="2580")
    puk = browser.element("#puk").text
    change_pin(browser, "Change the PIN", Old_PIN="2580", New_PIN="9876", New_PIN_again="9876")
    change_pin(browser, "Reset it with the PUK", PUK=puk, New_PIN="4321", New_PIN_again="4321")
    print("ok: a PIN is set, changed, and reset by the PUK", flush=True)
    opened = relay.login("alice")
    browser.tab("home")
    answer(browser, opened, opened["number"], "Approved", pin="4321")
    print("ok: a request is approved with the PIN", flush=True)


def move(browser, other, server, relay):
    settings(browser)
    browser.fill("Name of this phone", "Blue phone")
    browser.press("Save")
    browser.says("Saved.")
    browser.press("Compare with the relay")
    browser.says("The clock of this device is right.")
    print("ok: name and clock", flush=True)
    # The user approves on the old phone before the website gets a code for the new one.
    status, asked = relay.ask("POST", "/user/alice/activation", {})
    assert status == 403 and asked["code"] == "approval_required", asked
    browser.tab("home")
    answer(browser, asked, asked["number"], "Approved", pin="4321")
    bound(other, server, relay.call("POST", "/user/alice/activation", {"approval": asked["challenge"]})["uri"])
    other.heading("Phone added")
    print("ok: the old phone approves the new one", flush=True)
    settings(browser)
    browser.press("Remove this phone")
    browser.press("Remove this phone", "dialog button")
    browser.heading("Settings")
    browser.tab("home")
    browser.says("This app confirms your logins")
    print("ok: a goodbye", flush=True)


def main(programs):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        certificate, path = make_certificate(directory)
        app = App([])
        server = serve(path, "localhost", app)
        app.relays.append(server.origin)
        relay = RealRelay(programs, os.path.join(directory, "relay"), server.origin)
        server.RequestHandlerClass.relay = relay
        browsers = [Browser(shutil.which("chromium"), shutil.which("chromedriver"), os.path.join(directory, name), spki_pin(certificate))
                    for name in ("one", "two")]
        try:
            logins(browsers[0], server, relay)
            codes_and_pin(browsers[0], relay)
            move(*browsers, server, relay)
            return 0 if not server.faults else 1
        except Exception:
            traceback.print_exc()
            print(browsers[0].text())
            return 1
        finally:
            for browser in browsers:
                browser.quit()
            relay.end()
            print("\n".join(server.faults))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
