"""The steps around accounts: several of them, codes, PIN, notices, recoveries, and their end."""

import hashlib
import hmac
import os
import struct
import subprocess
import time
from urllib.parse import urlencode

from selenium.webdriver.common.by import By

from steps import account_settings, bind, buttons, link, open_request, whole


def two_relays(stage):
    """a second account at a relay of another origin works beside the first"""
    browser, relay = stage.browser("one"), stage.far.relay
    values = relay.activate("carol")
    bind(stage, browser, relay, values, name="Second")
    browser.press("I have written it down")
    browser.heading("Requests")
    near, far = stage.near.relay.ask(), relay.ask("carol", service="vault")
    for challenge in (near, far):
        open_request(browser, challenge)
        whole(browser)
        browser.fill("Number on the website", "47")
        browser.press("Approve")
        browser.heading("Approved")
        browser.press("Done")
    assert stage.near.relay.decided(near)["uv"] == relay.decided(far)["uv"] == "passcode"
    stage.looks.look(browser, "10-two-accounts")


def pinned_by_chosen_app(stage):
    """an app at a host that no relay serves takes k, and binds under it"""
    browser, relay = stage.browser("chosen"), stage.far.relay
    browser.authenticator()
    values = relay.activate("dave", k=bytes(range(32)))
    device = bind(stage, browser, relay, values, at=stage.chosen)
    assert device["app"] == stage.chosen.origin and device["passkey"]["rp"] == "app.localhost"
    stage.close("chosen")


def move_to_new_phone(stage):
    """the old phone approves the new one, by its key and number"""
    old, new, relay = stage.browser("one"), stage.browser("three"), stage.near.relay
    values = relay.activate("alice")
    relay.policy["wait"] = "07"
    new.open(link(stage.near, values))
    new.heading("Add this phone?")
    new.press("Add this phone")
    new.heading("Approve this phone")
    assert new.element("#enrol-number").text == "07"
    stage.looks.look(new, "11-waits")
    key = new.element("#enrol-key").text
    challenge = relay.ask(number="07", action="enrol", details=[{"label": "factor", "value": "phone"}, {"label": "key", "value": key}])
    old.tab("home")
    open_request(old, challenge)
    old.heading("Add this to your account?")
    old.says(key)
    whole(old)
    stage.looks.look(old, "12-new-phone")
    old.fill("Number on the website", "07")
    old.press("Approve")
    old.heading("Approved")
    old.press("Done")
    relay.policy["wait"] = None
    new.heading("Phone added")
    new.press("I have written it down")
    stage.close("three")


def lost_answer(stage):
    """a phone whose answer was lost is found bound, and keeps its key"""
    browser, relay = stage.browser("four"), stage.near.relay
    values = relay.activate("erin")
    browser.open(link(stage.near, values))
    browser.heading("Add this phone?")
    relay.policy["down"] = True
    browser.press("Add this phone")
    browser.says("The relay does not answer. Trying again …")
    browser.reload()
    browser.says("waiting for approval")
    relay.policy["down"] = False
    browser.press("shop…", "#screen .entry")
    browser.heading("Phone added")
    stage.close("four")


def codes(stage):
    """codes come with the account, from a pasted link, and by counter"""
    browser = stage.browser("one")
    account_settings(browser, "The Shop")
    browser.heading("The Shop")
    stage.looks.look(browser, "13-account")
    browser.press("Get codes")
    browser.heading("Codes")
    browser.until(lambda: browser.element(".otp").text.replace(" ", "") in around_now(b"12345678901234567890"), "the code")
    browser.press("Add a code")
    browser.fill("Link", "otpauth://hotp/Mail:alice?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&counter=0")
    stage.looks.look(browser, "14-add")
    browser.press("Continue")
    browser.heading("Codes")
    # The first values of RFC 4226, appendix D.
    for code in ("755 224", "287 082"):
        browser.press("Next code")
        browser.says(code)
    stage.looks.look(browser, "15-codes")
    browser.press("Remove the code for Mail")
    browser.press("Remove", "dialog button")
    browser.until(lambda: "755 224" not in browser.text() and len(browser.driver.find_elements(By.CSS_SELECTOR, ".otp")) == 1, "one code")


def around_now(secret):
    """The codes of RFC 6238 of the steps around now: the page may be a moment behind."""
    def code(step):
        mac = hmac.new(secret, struct.pack(">Q", step), hashlib.sha1).digest()
        at = mac[-1] & 15
        return f"{(struct.unpack('>I', mac[at:at + 4])[0] & 0x7fffffff) % 10**6:06}"
    now = int(time.time()) // 30
    return [code(step) for step in (now - 1, now, now + 1)]


def pin(stage):
    """a PIN is set, used, mistyped, changed, and set anew with the PUK"""
    browser, relay = stage.browser("one"), stage.near.relay
    account_settings(browser, "The Shop")
    browser.press("Set or change the PIN")
    browser.heading("Set a PIN")
    browser.fill("New PIN", "2580")
    browser.fill("New PIN again", "2581")
    browser.press("Continue")
    browser.says("The two PINs differ.")
    browser.fill("New PIN again", "2580")
    browser.press("Continue")
    browser.heading("PIN stored")
    puk = browser.element("#puk").text.replace(" ", "")
    assert len(puk) == 12 and puk.isdigit()
    stage.looks.look(browser, "16-puk")
    browser.tab("home")
    challenge = relay.ask(demands={"pin": "sign"})
    open_request(browser, challenge)
    whole(browser)
    browser.fill("Number on the website", "47")
    browser.fill("PIN", "1111")
    browser.press("Approve")
    browser.says("The PIN was wrong. Tries left: 2.")
    stage.looks.look(browser, "17-pin")
    browser.fill("PIN", "2580")
    browser.press("Approve")
    browser.heading("Approved")
    browser.press("Done")
    account_settings(browser, "The Shop")
    browser.press("Set or change the PIN")
    browser.press("Reset it with the PUK")
    browser.fill("PUK", puk)
    browser.fill("New PIN", "9876")
    browser.fill("New PIN again", "9876")
    browser.press("Continue")
    browser.heading("PIN stored")
    stored = browser.ask("""
        indexedDB.open("twoefay-phone").onsuccess = ({ target: { result } }) => {
          result.transaction("phones").objectStore("phones").getAll().onsuccess = ({ target: { result: all } }) => done(JSON.stringify(all));
        };
    """)
    assert "2580" not in stored and "9876" not in stored and puk not in stored


def help_desk(stage):
    """a locked PIN is set anew with a code of the help desk, from the request that needed it"""
    browser, relay = stage.browser("one"), stage.near.relay
    mine = next(one for one in relay.devices.values() if one["username"] == "alice" and one["name"] == "My phone")
    browser.tab("home")
    challenge = relay.ask(demands={"pin": "sign"})
    open_request(browser, challenge)
    whole(browser)
    browser.fill("Number on the website", "47")
    for tries in (2, 1, 0):
        browser.fill("PIN", "0000")
        browser.press("Approve")
        browser.says(f"The PIN was wrong. Tries left: {tries}.")
    assert mine["pin"]["state"] == "locked"
    browser.fill("PIN", "9876")
    browser.press("Approve")
    browser.says("The PIN is locked.")
    relay.end(challenge)
    browser.heading("Request closed")
    browser.press("Done")
    challenge = relay.ask(demands={"pin": "locked"})
    open_request(browser, challenge)
    browser.says("This phone can only reject until you reset the PIN.")
    browser.press("PIN", "button")
    browser.press("Use a code of the help desk")
    browser.says("tell it to nobody")
    stage.looks.look(browser, "17-unlock")

    def attempt(code, words):
        browser.fill("Code of the help desk", code)
        browser.fill("New PIN", "135790")
        browser.fill("New PIN again", "135790")
        browser.press("Continue")
        browser.says(words)

    attempt("1234", "The code has 8 digits.")
    attempt("1234 5678", "No code is valid now.")
    relay.unlock = {"code": "12345678", "tries": 5}
    attempt("1234 5679", "The code was wrong. Tries left: 4.")
    attempt("1234-5678", "PIN stored")
    puk = browser.element("#puk").text.replace(" ", "")
    assert len(puk) == 12 and mine["pin"]["state"] == "set"
    relay.challenges[challenge]["demands"] = {"pin": "sign"}
    browser.open(f"{stage.near.origin}/phone/")
    open_request(browser, challenge)
    whole(browser)
    browser.fill("Number on the website", "47")
    browser.fill("PIN", "135790")
    browser.press("Approve")
    browser.heading("Approved")
    browser.press("Done")


def letters(stage):
    """notices are counted, read and archived, and a recovery is stopped"""
    browser, relay = stage.browser("one"), stage.near.relay
    relay.leave_message("alice", "Maintenance", "No logins on Sunday from 2 to 4.\nThe Shop")
    browser.tab("home")
    browser.press("Check for requests")
    browser.says("Messages (1)")
    browser.tab("notices")
    browser.press("Maintenance…", "#screen .entry")
    browser.says("No logins on Sunday from 2 to 4.")
    stage.looks.look(browser, "18-message")
    relay.recoveries = [{
        "recovery": "5be1", "factor": "totp", "state": "waiting", "started_by": "website", "created_at": "2026-11-22T08:00:00.000Z",
        "ready_at": "2026-11-23T08:05:00.000Z", "expires_at": "2026-11-30T08:05:00.000Z"}]
    browser.open(f"{stage.near.origin}/phone/")
    browser.says("Somebody told The Shop that your authenticator app was lost.")
    stage.looks.look(browser, "19-recovery")
    browser.press("I have lost nothing: stop this")
    browser.until(lambda: not relay.recoveries and "Somebody told" not in browser.text(), "the end of the recovery")


def history(stage):
    """the last decisions are listed, the newest first, and thirty at most"""
    browser, relay = stage.browser("one"), stage.near.relay
    for at in range(3):
        challenge = relay.ask(service=f"service {at}")
        browser.tab("home")
        open_request(browser, challenge)
        whole(browser)
        browser.press("Reject")
        browser.heading("Rejected")
        browser.press("Done")
    browser.tab("settings")
    browser.press("Last decisions")
    browser.heading("Last decisions")
    rows = [one.text for one in browser.driver.find_elements(By.CSS_SELECTOR, "#screen .list li")]
    assert "service 2" in rows[0] and "service 1" in rows[1] and "Rejected" in rows[0] and 3 < len(rows) <= 30, rows
    stage.looks.look(browser, "20-history")


def settings(stage):
    """the app is German where the person wants it, and a phone is renamed"""
    browser, relay = stage.browser("one"), stage.near.relay
    browser.tab("settings")
    stage.looks.look(browser, "21-settings")
    browser.named("Language", "select")[0].send_keys("Deutsch")
    browser.heading("Einstellungen")
    assert browser.script("return document.documentElement.lang") == "de"
    stage.looks.look(browser, "22-settings-german")
    browser.tab("home")
    challenge = relay.ask(username="alice", place="برلين", details=[{"label": "المبلغ", "value": "١٢ €"}])
    open_request(browser, challenge)
    browser.heading("Sind Sie das?")
    whole(browser)
    stage.looks.look(browser, "23-request-german")
    browser.press("Ablehnen")
    browser.heading("Abgelehnt")
    browser.press("Fertig")
    found = browser.notified(stage.near.origin, {"title": "The Shop", "loc-key": "TWOEFAY_LOGIN_IP", "loc-args": ["192.0.2.7"], "challenge": "c3"})
    assert found[0][1] == "Sind Sie das, von 192.0.2.7?", found
    browser.tab("settings")
    browser.named("Sprache", "select")[0].send_keys("English")
    browser.heading("Settings")
    account_settings(browser, "The Shop")
    browser.fill("Name of this phone", "Blue phone")
    browser.press("Save")
    browser.says("Saved.")
    assert any(one["name"] == "Blue phone" for one in relay.devices.values())


def wrong_clock(stage):
    """the clock of the relay is used for this relay if that of the device is far off"""
    browser, relay = stage.browser("one"), stage.near.relay
    relay.ahead = 3 * 86400
    try:
        with relay.changed:
            relay.changed.notify_all()
        browser.open(f"{stage.near.origin}/phone/")
        challenge = relay.ask()
        open_request(browser, challenge)
        whole(browser)
        browser.press("Reject")
        browser.heading("Rejected")
        assert abs(relay.decided(challenge)["iat"] - relay.now()) < 60
        browser.press("Done")
        browser.says("The clock of this device is 2")
        stage.looks.look(browser, "25-wrong-clock")
    finally:
        relay.ahead = 0
    browser.open(f"{stage.near.origin}/phone/")
    account_settings(browser, "The Shop")
    browser.press("Compare with the relay")
    browser.says("The clock of this device is right.")


def end(stage):
    """a phone that is suspended says so, and one that leaves says goodbye and deletes its keys"""
    browser, relay = stage.browser("one"), stage.near.relay
    mine = [one for one in relay.devices.values() if one["username"] == "alice"][0]
    mine["state"] = "suspended"
    browser.open(f"{stage.near.origin}/phone/")
    browser.says("suspended")
    mine["state"] = "active"
    browser.open(f"{stage.near.origin}/phone/")
    browser.until(lambda: browser.text().count("active") == 2, "both are active again")
    account_settings(browser, "The Shop")
    browser.press("Remove this phone")
    stage.looks.look(browser, "24-remove")
    browser.press("Remove this phone", "dialog button")
    browser.until(lambda: mine["state"] == "unbound", "the goodbye")
    browser.heading("Settings")
    browser.tab("home")
    browser.until(lambda: len(browser.driver.find_elements(By.CSS_SELECTOR, "#screen .entry")) == 1, "one account")
    other = [one for one in stage.far.relay.devices.values() if one["username"] == "carol"][0]
    with stage.far.relay.changed:
        other.update(state="unbound", by="website")
        stage.far.relay.changed.notify_all()
    browser.says("removed")


def camera(stage):
    """the camera reads a code without a reader of the browser, and opens what it says"""
    values = stage.near.relay.activate("kim")
    film = os.path.join(stage.directory, "code.y4m")
    make_film(film, "twoefay://enrol?" + urlencode(values))
    browser = stage.browser("camera", "--use-fake-device-for-media-stream", f"--use-file-for-fake-video-capture={film}")
    browser.cdp("Page.addScriptToEvaluateOnNewDocument", {"source": "delete window.BarcodeDetector;"})
    browser.open(f"{stage.near.origin}/phone/")
    browser.press("Add an account")
    browser.press("Scan a code")
    browser.heading("Add this phone?")
    browser.press("Add this phone")
    browser.heading("Phone added")
    stage.close("camera")


def make_film(path, text):
    """A film of one picture: the code in the middle of 640 by 480 grey pixels."""
    drawn = subprocess.run(["qrencode", "-t", "ASCII", "-m", "4", "-l", "L", "-o", "-", "--", text], check=True, capture_output=True, text=True).stdout
    rows = [line[::2] for line in drawn.splitlines() if line]
    scale = 460 // len(rows)
    width, height, margin = 640, 480, 460 // len(rows) * len(rows)
    luma = bytearray(b"\xb0" * (width * height))
    for y in range(margin):
        for x in range(margin):
            luma[(y + 10) * width + x + 90] = 0x18 if rows[y // scale][x // scale] == "#" else 0xe8
    with open(path, "wb") as file:
        file.write(f"YUV4MPEG2 W{width} H{height} F15:1 Ip A1:1 C420jpeg\n".encode())
        for _ in range(5):
            file.write(b"FRAME\n" + luma + b"\x80" * (width * height // 2))


ALL = (two_relays, pinned_by_chosen_app, move_to_new_phone, lost_answer, camera, codes, pin, help_desk, letters, history, settings, wrong_clock, end)
