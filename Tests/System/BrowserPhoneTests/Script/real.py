"""real.py PROGRAMS [PORT PORT]: the app in Chromium, as the relay itself serves it.

PROGRAMS is the directory of twoefay and twoefayd, and the ports are those of the relay and of its listener for browsers. The packages of dev/need must be in PYTHONPATH.
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

from browser import Browser
from server import make_certificate
from statements import spki_pin
from steps import open_request, whole

POLICIES = {"answers": "signed", "factors": "push,totp", "phone-codes": "again", "pin": "optional", "guesses": "100"}


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class RealRelay:
    """A relay in its own directory, with a listener for browsers at `origin`."""

    def __init__(self, programs, directory, certificate, port, browsers):
        self.programs, self.directory, self.port = programs, directory, port
        self.origin = f"https://localhost:{browsers}"
        self.settings = os.path.join(directory, "twoefay.yaml")
        self.tool("init", directory, "--listen", f"127.0.0.1:{self.port}")
        with open(self.settings) as file:
            text = file.read()
        for name, value in (("listen", f"127.0.0.1:{browsers}"), ("origin", self.origin), ("certificate", certificate), ("key", certificate)):
            text, count = re.subn(rf"(\nphone:\n(?:  .*\n)*?)  # {name}: .*\n", rf"\g<1>  {name}: {value}\n", text)
            assert count == 1, name
        with open(self.settings, "w") as file:
            file.write(text)
        self.tool("--config", self.settings, "website", "add", "shop", "--out", directory,
                  *(word for name, value in POLICIES.items() for word in (f"--{name}", value)))
        self.log = open(os.path.join(directory, "log"), "w")
        self.process = subprocess.Popen(
            [os.path.join(programs, "twoefayd"), "--config", self.settings], stdin=subprocess.DEVNULL, stderr=self.log)
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

    def ask(self, method, path, body):
        """A request of the website, with whatever answer: (status, object)."""
        connection = http.client.HTTPSConnection("localhost", self.port, context=self.website)
        connection.request(method, path, json.dumps(body), {"content-type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, json.loads(content) if content else None

    def call(self, method, path, body):
        status, found = self.ask(method, path, body)
        assert status < 300, (method, path, status, found)
        return found

    def login(self, username, **more):
        return self.call("POST", "/login", {"username": username, **more})


def bound(browser, activation):
    """Opens the link of an activation, and agrees."""
    browser.open(activation["link"])
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


def logins(browser, relay):
    bound(browser, relay.call("POST", "/register", {"username": "alice"})["activation"])
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


def move(browser, other, relay):
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
    bound(other, relay.call("POST", "/user/alice/activation", {"approval": asked["challenge"]}))
    other.heading("Phone added")
    print("ok: the old phone approves the new one", flush=True)
    settings(browser)
    browser.press("Remove this phone")
    browser.press("Remove this phone", "dialog button")
    browser.heading("Settings")
    browser.tab("home")
    browser.says("This app confirms your logins")
    print("ok: a goodbye", flush=True)


def main(programs, port=None, browsers=None):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        certificate, path = make_certificate(directory)
        os.chmod(path, 0o600)
        relay = RealRelay(programs, os.path.join(directory, "relay"), path, port or free_port(), browsers or free_port())
        people = [Browser(shutil.which("chromium"), shutil.which("chromedriver"), os.path.join(directory, name), spki_pin(certificate))
                    for name in ("one", "two")]
        try:
            logins(people[0], relay)
            codes_and_pin(people[0], relay)
            move(*people, relay)
            return 0
        except Exception:
            traceback.print_exc()
            print(people[0].text())
            return 1
        finally:
            for browser in people:
                browser.quit()
            relay.end()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
