"""real.py PROGRAMS [PORT PORT]: the app in Chromium, as the relay itself serves it.

PROGRAMS is the directory of twoefay and twoefayd, and the ports are those of the relay and of its listener for browsers. The packages of dev/need must be in PYTHONPATH.
"""

import base64
import hashlib
import json
import os
import shutil
import sys
import tempfile
import traceback

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from browser import Browser
from person import answer, bound, settings
from realrelay import RealRelay, free_port
from server import make_certificate
from statements import spki_pin
from steps import open_request, show_rest, whole


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


def owner(browser, relay):
    """The phone of somebody whose device can check its owner. The relay judges the check, and the website gets it."""
    authenticator = browser.authenticator()
    bound(browser, relay.call("POST", "/register", {"username": "carol"})["activation"])
    browser.heading("Phone added")
    browser.press("I have written it down")
    if browser.named("Not now"):
        browser.press("Not now")
    phone, = relay.call("GET", "/user/carol", None)["devices"]
    assert phone["platform"] == "web" and phone["app"] == relay.origin, phone
    assert phone["webauthn"]["rp"] == "localhost" and phone["webauthn"]["jwk"]["crv"] == "P-256", phone
    opened = relay.login("carol")
    browser.tab("home")
    answer(browser, opened, opened["number"], "Approved")
    told = relay.call("POST", "/auth", {"challenge": opened["challenge"]})
    # The relay serves this page itself.
    assert (told["login"], told["app"], told["assurance"]) == ("success", relay.origin, "substantial"), told
    assert is_assertion(told, phone), told
    print("ok: a request is approved with the check of the owner", flush=True)
    browser.verifies(authenticator, False)
    opened = relay.login("carol")
    open_request(browser, opened["challenge"])
    whole(browser)
    browser.fill("Number on the website", opened["number"])
    browser.press("Approve")
    browser.says("The device did not confirm you")
    browser.press("Approve without the check", "dialog button")
    browser.heading("Approved")
    browser.press("Done")
    told = relay.call("POST", "/auth", {"challenge": opened["challenge"]})
    assert told["login"] == "success" and "webauthn" not in told, told
    print("ok: a request is approved without the check", flush=True)


def is_assertion(told, phone):
    """Whether the website's own check of the owner's assertion over the receipt succeeds."""
    data, client, signature = (unbase64(told["webauthn"][name]) for name in ("authenticator_data", "client_data", "signature"))
    challenge = hashlib.sha256(told["receipt"].rpartition(".")[0].encode()).digest()
    seen = json.loads(client)
    x, y = (int.from_bytes(unbase64(phone["webauthn"]["jwk"][name]), "big") for name in "xy")
    key = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
    key.verify(signature, data + hashlib.sha256(client).digest(), ec.ECDSA(hashes.SHA256()))
    return (seen["type"], unbase64(seen["challenge"]), seen["origin"]) == ("webauthn.get", challenge, phone["app"]) and (
        data[:32] == hashlib.sha256(phone["webauthn"]["rp"].encode()).digest() and data[32] & 5 == 5)


def unbase64(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def own_account(browser, relay):
    """The person sees phones and logins, and reports one afterwards: the relay freezes the account."""
    browser.tab("settings")
    browser.heading("Settings")
    browser.until(lambda: [one for one in browser.driver.find_elements("css selector", "#screen .entry") if "carol" in one.text], "the account")[0].click()
    browser.press("Show phones, factors and logins")
    browser.heading("Your account")
    browser.until(lambda: "this phone" in browser.element("#own-devices").text, "the phone")
    logins = browser.driver.find_elements("css selector", "#own-logins li")
    assert len(logins) == 2 and all("Successful" in one.text for one in logins), [one.text for one in logins]
    logins[0].find_element("css selector", "button").click()
    browser.heading("Was this not you?")
    show_rest(browser)
    browser.press("Yes, freeze my account")
    browser.heading("Reported")
    assert relay.call("GET", "/user/carol", None)["state"] == "frozen"
    print("ok: a login is reported afterwards", flush=True)


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
            owner(people[0], relay)
            own_account(people[0], relay)
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
