"""real.py PROGRAMS [PORT PORT]: the app in Chromium, as the relay itself serves it.

PROGRAMS is the directory of twoefay and twoefayd, and the ports are those of the relay and of its listener for browsers. The packages of dev/need must be in PYTHONPATH.
"""

import os
import shutil
import sys
import tempfile
import traceback

from browser import Browser
from person import answer, bound, settings
from realrelay import RealRelay, free_port
from server import make_certificate
from statements import spki_pin


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
