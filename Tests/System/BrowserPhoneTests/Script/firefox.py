"""firefox.py PROGRAMS [PORT PORT]: the app in Firefox, with pushes that the relay sends and the browser decrypts.

PROGRAMS is the directory of twoefay and twoefayd, and the ports are those of the relay and of its listener for browsers. The
packages of dev/need must be in PYTHONPATH.
"""

import datetime
import json
import os
import shutil
import ssl
import sys
import tempfile
import traceback
import urllib.request

from authority import Authority
from autopush import PushServer
from gecko import Firefox
from person import answer, bound, finish
from realrelay import RealRelay, free_port
from screens import UNFIT
from statements import read
from steps import whole

CONTACT = "mailto:operator@example.com"
NOTIFICATIONS = """
navigator.serviceWorker.ready.then((registration) => registration.getNotifications({ tag: arguments[0] })).then(
  (all) => done(all.map(({ title, body, lang, data }) => [title, body, lang, data.challenge])));
"""


class Run:
    """The programs of one run. `faults` are those of the screens and of the console."""

    def __init__(self, programs, directory, ports):
        authority = Authority(directory)
        self.faults, self.browser = set(), None
        self.push = PushServer(authority.server, CONTACT)
        self.relay = RealRelay(programs, os.path.join(directory, "relay"), authority.server, *ports, {
            "push.web.key": "vapid.key", "push.web.contact": CONTACT, "push.web.ca": authority.path,
            "push.web.allow": '"127.0.0.0/8, ::1"'})
        self.context = ssl.create_default_context(cafile=authority.path)
        try:
            self.browser = Firefox(
                shutil.which("firefox-esr"), os.path.join(directory, "firefox"), authority.der, self.relay.origin,
                {"dom.push.serverURL": self.push.address, "dom.push.testing.allowInsecureServerURL": True})
            self.browser.permit("desktop-notification")
            self.browser.size(390, 844)
        except BaseException:
            self.end()
            raise

    def end(self):
        if self.browser:
            self.browser.quit()
        self.relay.end()
        self.push.end()

    def look(self, name):
        """Looks whether the screen fits, and what the console says."""
        self.faults.update(f"{name}: {fault}" for fault in self.browser.script(UNFIT))
        self.faults.update(self.browser.complaints())

    def server_key(self):
        """The key that the relay tells to whoever asks."""
        with urllib.request.urlopen(f"{self.relay.origin}/push", context=self.context) as answer:
            return json.load(answer)["web"]["application_server_key"]

    def sent(self, opened):
        """The message of a login, as the push service has it: it expires with the login, and cannot be read."""
        topic = opened["challenge"]
        message = self.browser.until(lambda: next((one for one in self.push.messages if one.topic == topic), None), "the message")
        assert message.urgency == "high", message.urgency
        left = datetime.datetime.fromisoformat(opened["expires_at"].replace("Z", "+00:00")).timestamp() - message.at
        # Whole seconds from when it was sent, which is before the push service has it.
        assert left - 1 <= message.ttl <= 300, (left, message.ttl)
        for words in (topic, "members", "192.0.2.7", "TWOEFAY"):
            assert words.encode() not in message.body, f"{words} can be read"
        return message

    def delivered(self, opened):
        """The message, after the browser has said that it decrypted it and gave it to the service worker."""
        message = self.sent(opened)
        said = self.browser.until(lambda: [one for one in self.push.acks if one["version"] == message.version], "the ack")
        # 100: delivered; 101 would be a message that the browser cannot decrypt.
        assert said == [{"channelID": message.channel, "version": message.version, "code": 100}], said
        return message

    def shown(self, opened, *words):
        found = self.browser.until(lambda: self.browser.ask(NOTIFICATIONS, opened["challenge"]), "the notification")
        assert found == [[*words, opened["challenge"]]], found

    def approved(self, opened, request):
        """The website has the phone's signature of its request."""
        end = self.relay.call("POST", "/auth", {"challenge": opened["challenge"]})
        assert end["login"] == "success" and end["proof"] == "signed", end
        [device] = self.user()["devices"]
        _, claims = read(end["receipt"], "twoefay-decision+jwt", device["jwk"])
        assert (claims["decision"], claims["challenge"], claims["request"]) == ("approve", opened["challenge"], request), claims

    def steps(self, opened):
        found = self.relay.call("POST", "/auth", {"challenge": opened["challenge"]})["steps"]
        return [(step["factor"], step["state"], step.get("reason")) for step in found]

    def user(self):
        return self.relay.call("GET", "/user/alice")

    def factor(self, kind):
        """Waits until the relay pushes to the phone, or does so no more."""
        self.browser.until(lambda: self.user()["factors"] == [{"kind": kind, "state": "active"}], f"the factor {kind}")


def subscription(run):
    """Firefox subscribes once, for the key of the relay"""
    browser, push = run.browser, run.push
    bound(browser, run.relay.call("POST", "/register", {"username": "alice"})["activation"])
    browser.heading("Phone added")
    run.look("phone added")
    browser.press("I have written it down")
    browser.heading("Requests")
    run.factor("push")
    assert len(push.registered) == len(push.channels) == 1, push.registered
    [(key, _)] = push.channels.values()
    assert key == run.server_key(), key
    browser.tab("settings")
    browser.says("Notifications are on.")


def closed_app(run):
    """a push is decrypted while the app is closed, and the login is approved"""
    browser = run.browser
    browser.driver.get("about:blank")
    opened = run.relay.login("alice", service="members", action="pay", ip="192.0.2.7", request="abc",
                             details=[{"label": "amount", "value": "12.00 EUR"}, {"label": "to", "value": "Zoë Müller"}])
    assert opened["factor"] == "push", opened
    run.delivered(opened)
    tabs = browser.driver.window_handles
    browser.press_notification("shop", "Is this you, at members, from 192.0.2.7?")
    browser.take_tab(tabs)
    browser.size(390, 844)
    browser.heading("Do you agree?")
    for words in ("alice", "members", "pay", "12.00 EUR", "Zoë Müller", "192.0.2.7"):
        browser.says(words)
    whole(browser)
    run.look("request")
    finish(browser, opened["number"], "Approved")
    run.approved(opened, "abc")


def open_app(run):
    """a push is shown in the language that the person chose, while the app is open"""
    browser = run.browser
    browser.tab("settings")
    browser.element("option[lang=de]").click()
    browser.heading("Einstellungen")
    run.look("settings in German")
    opened = run.relay.login("alice", ip="192.0.2.7", request="def")
    first, second = run.push.messages[0], run.delivered(opened)
    # The length does not tell what the text is, and no key is used twice.
    assert len(first.body) == len(second.body) and first.salt != second.salt and first.sender != second.sender
    assert first.channel == second.channel
    run.shown(opened, "shop", "Sind Sie das, von 192.0.2.7?", "de")
    # Pressing the notification shows the request in the page that is open.
    browser.press_notification("shop", "Sind Sie das, von 192.0.2.7?")
    browser.heading("Sind Sie das?")
    whole(browser)
    run.look("request in German")
    browser.fill("Zahl auf der Website", opened["number"])
    browser.press("Bestätigen")
    browser.heading("Bestätigt")
    run.approved(opened, "def")
    browser.press("Fertig")
    browser.tab("settings")
    browser.element("option[lang=en]").click()
    browser.heading("Settings")


def gone(run):
    """a subscription that is gone is used no more, and the phone polls"""
    browser = run.browser
    run.push.forget()
    # A phone that shows the request would be another step of the cascade.
    browser.driver.get("about:blank")
    opened = run.relay.login("alice", service="members", request="ghi")
    message = run.sent(opened)
    assert message.channel is None, "the subscription is not gone"
    browser.until(lambda: run.steps(opened) == [("push", "refused", "410")], "the refusal")
    run.factor("pull")
    browser.open(f"{run.relay.origin}/phone/")
    answer(browser, opened, opened["number"], "Approved")
    run.approved(opened, "ghi")
    opened = run.relay.login("alice", service="members", request="jkl")
    assert opened["factor"] == "pull", opened
    answer(browser, opened, opened["number"], "Approved")
    run.approved(opened, "jkl")
    assert not any(one.topic == opened["challenge"] for one in run.push.messages), "a push to a subscription that is gone"


def again(run):
    """Firefox learns that it was forgotten, and its next subscription gets the next push"""
    browser, push = run.browser, run.push
    browser.driver.get("about:blank")
    push.disconnect()
    # The service worker subscribes while the app is closed, and the page tells the relay when it is opened.
    browser.until(lambda: len(push.registered) == 2, "another subscription")
    assert run.user()["factors"] == [{"kind": "pull", "state": "active"}]
    browser.open(f"{run.relay.origin}/phone/")
    run.factor("push")
    opened = run.relay.login("alice", service="members", request="mno")
    assert opened["factor"] == "push", opened
    run.delivered(opened)
    run.shown(opened, "shop", "Is this you, at members?", "en")
    answer(browser, opened, opened["number"], "Approved")
    run.approved(opened, "mno")
    assert len(push.registered) == 2 and len(push.channels) == 1, push.registered


STEPS = (subscription, closed_app, open_app, gone, again)


def main(programs, port=None, browsers=None):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        run = Run(programs, directory, (port or free_port(), browsers or free_port()))
        try:
            for step in STEPS:
                step(run)
                run.look(step.__name__)
                print(f"ok: {step.__doc__}", flush=True)
        except Exception:
            traceback.print_exc()
            run.faults.add(run.browser.text())
        finally:
            run.end()
    faults = [*run.faults, *run.push.faults]
    print("\n".join([*faults, f"{len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
