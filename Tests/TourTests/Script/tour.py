"""The tour through the demo, step by step: tour.py WISH, a JSON text with the demo's addresses and what to use.

Prints a line for each step. Ends with 0, or with what was not as it should be.
"""

import json
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__))))

from browser import Browser  # noqa: E402
from people import Phone, Theatre, Website  # noqa: E402


class Tour:
    def __init__(self, wish, browser):
        self.wish = wish
        self.browser = browser
        self.axe = open(wish["axe"], encoding="utf-8").read() if wish.get("axe") else None
        self.checked = set()
        self.faults = []
        self.theatre = Theatre(browser.window(1680, 900), wish["theatre"])
        self.site = Website(browser.window(800, 760), wish["website"])
        self.phone = Phone(browser.window(500, 960), wish["phone"])

    def shot(self, name, who, scale=0.8):
        """A picture of the step; and the page is looked at as a screen reader would, once for each."""
        window = who.window
        window.front()
        window.scheme("light")
        path = os.path.join(self.wish["pictures"], f"{name}.png")
        window.picture(path, scale)
        self.check(window, name)

    def check(self, window, name):
        title = window.driver.execute_script("return document.title + location.pathname + document.querySelector('h1')?.textContent")
        if self.axe is None or title in self.checked:
            return
        self.checked.add(title)
        for scheme, rules in (("light", None), ("dark", ["color-contrast"])):
            window.scheme(scheme)
            window.driver.execute_script(self.axe)
            options = {"resultTypes": ["violations"], "iframes": False}
            if rules:
                options["runOnly"] = {"type": "rule", "values": rules}
            found = window.ask("axe.run(arguments[0]).then((one) => done(one.violations));", options)
            self.faults += [
                f"{name}, {scheme}: {one['id']} ({one['impact']}): {node['html'][:200]} {node.get('failureSummary', '')}"
                for one in found for node in one["nodes"]
            ]
        window.scheme("light")

    # The steps

    def signs_up(self):
        self.site.sign_up("ada", "correct horse battery", "ada@example.com", "+436601234567")
        self.shot("sign-up", self.site)

    def binds_the_phone(self):
        phone, site = self.phone, self.site
        phone.window.heading("Accounts")
        self.shot("phone-empty", phone)
        phone.window.press("Scan what the website shows")
        phone.window.heading("Bind this phone?")
        self.shot("phone-bind", phone)
        phone.window.press("Bind this phone")
        phone.window.heading("This phone is bound")
        self.shot("phone-bound", phone)
        phone.window.press("Done")
        phone.window.says("bound")
        site.window.heading("My phones")
        site.window.says("Bound, and its key checked")
        self.shot("phones", site)

    def makes_recovery_codes(self):
        site, phone = self.site, self.phone
        site.window.press("Recovery codes", "nav a")
        site.window.press("Make recovery codes")
        phone.ring()
        self.shot("phone-further", phone)
        phone.type(site.number())
        phone.window.press("Approve")
        phone.window.heading("Approved")
        phone.window.press("Done")
        site.window.says("They are shown this once")
        self.codes = [one.text for one in site.window.all("#codes code")]
        assert len(set(self.codes)) == 10, self.codes
        self.shot("recovery-codes", site)
        site.window.press("I have them")

    def sets_up_an_app(self):
        site, phone = self.site, self.phone
        site.window.press("Authenticator app", "nav a")
        site.window.press("Set up an app")
        phone.approve(site.number())
        site.window.says("Type the code that it shows.")
        self.shot("totp", site)
        phone.window.press("Accounts")
        phone.window.press("Scan what the website shows")
        phone.window.heading("Codes")
        self.used = phone.code()
        self.shot("phone-codes", phone)
        site.enter(self.used, "The app's code")
        site.window.says("Your authenticator app counts from now on.")

    def logs_in_by_push(self):
        site, phone = self.site, self.phone
        site.log_out()
        site.begin()
        number = site.number()
        self.shot("wait", site)
        phone.rings()
        self.shot("phone-rings", phone)
        phone.ring()
        for words in ("The Shop asks", "ada", "Members' area", "127.0.0.1"):
            phone.window.says(words)
        phone.window.press("Approve")
        phone.window.says("The website shows a number with 2 digits.")
        phone.type(number)
        self.shot("phone-question", phone)
        phone.window.press("Approve")
        phone.window.heading("Approved")
        self.shot("phone-approved", phone)
        phone.window.press("Done")
        site.is_in("Your phone let you in, and we have checked its signature.")
        self.shot("members", site)

    def types_a_wrong_number(self):
        site, phone = self.site, self.phone
        site.log_out()
        site.begin()
        wrong = f"{(int(site.number()) + 1) % 100:02}"
        phone.ring()
        phone.type(wrong)
        phone.window.press("Approve")
        phone.window.heading("Wrong number")
        self.shot("phone-wrong-number", phone)
        phone.window.press("Done")
        site.window.heading("You are not logged in")
        site.window.says("The number typed into the phone was not the one shown here.")
        self.shot("wrong-number", site)

    def rejects(self):
        """Without a mouse."""
        site, phone = self.site, self.phone
        site.begin()
        site.number()
        phone.ring()
        phone.window.press_by_keyboard("Reject")
        phone.window.heading("Rejected")
        phone.window.press_by_keyboard("Done")
        site.window.heading("You are not logged in")
        site.window.says("Your phone said no.")
        self.shot("rejected", site)

    def logs_in_by_app(self):
        site, phone = self.site, self.phone
        site.begin()
        site.use_code()
        self.shot("code", site)
        site.enter(phone.code(other_than=self.used))
        site.is_in("A code of your authenticator app let you in.")
        phone.ignore()

    def logs_in_by_mail(self):
        """With the push service down."""
        site, phone, theatre = self.site, self.phone, self.theatre
        site.log_out()
        theatre.switch("push", "down")
        before = len(phone.mails())
        site.begin()
        site.use_code()
        site.window.press("Send a mail to…")
        code = phone.mailed_code(before)
        self.shot("phone-mail", phone)
        site.enter(code)
        site.is_in("A code that was sent to you let you in.")
        theatre.switch("push", "up")

    def logs_in_by_recovery_code(self):
        site = self.site
        site.log_out()
        site.begin()
        site.use_code()
        site.window.press("I have a recovery code")
        site.window.heading("Enter a recovery code")
        self.shot("recovery", site)
        site.enter(self.codes[0], "Recovery code")
        site.is_in("A recovery code let you in. It is used up.")
        self.phone.ignore()

    def binds_a_second_phone(self):
        """The first one has to agree."""
        site, phone = self.site, self.phone
        site.window.press("My phones", "nav a")
        site.window.press("Bind another phone")
        phone.ring()
        phone.type(site.number())
        self.shot("first-approves", phone)
        phone.window.press("Approve")
        phone.window.heading("Approved")
        phone.window.press("Done")
        site.window.heading("Bind a phone")
        second = Phone(self.browser.window(500, 960), self.wish["phone_2"])
        second.bind()
        second.window.heading("This phone is bound")
        self.shot("second-bound", second)
        second.window.press("Done")
        site.window.heading("My phones")
        site.window.says("Phone 2")
        self.shot("two-phones", site)

    def outlives_the_relay(self):
        """It is killed in the middle of a login."""
        site, phone, theatre = self.site, self.phone, self.theatre
        self.browser.allowed = [r"/relay/\w+ - .*status of 50[23]", r"127\.0\.0\.1|localhost.*status of 503"]
        site.log_out()
        site.begin()
        number = site.number()
        phone.ring()
        theatre.switch("relay", "down")
        phone.type(number)
        phone.window.press("Approve")
        phone.window.says("The same answer is sent again")
        self.shot("phone-waits", phone)
        site.window.says("The login service does not answer at the moment.")
        self.shot("relay-down", site)
        theatre.switch("relay", "up")
        phone.window.heading("Approved")
        phone.window.press("Done")
        site.is_in("Your phone let you in, and we have checked its signature.")
        self.browser.check_console()
        self.browser.allowed = []

    def reports_fraud(self):
        site, phone = self.site, self.phone
        site.log_out()
        site.begin()
        site.number()
        phone.ring()
        phone.window.press("This wasn't me")
        phone.window.says("Was it somebody else?")
        self.shot("phone-fraud", phone)
        phone.window.press("Yes, freeze my account")
        phone.window.heading("Reported")
        phone.window.press("Done")
        site.window.heading("You are not logged in")
        site.window.says("Nobody gets in under your name")
        self.shot("fraud", site)

    def unlocks(self):
        site = self.site
        site.window.press("Unlock")
        site.window.heading("Unlock")
        self.shot("unlock", site)
        site.enter(self.codes[1], "Recovery code", "Unlock")
        site.window.says("It is lifted. Please log in again.")

    def speaks_german(self):
        site, phone = self.site, self.phone
        phone.window.press("Settings")
        phone.window.choose("Language", "Deutsch")
        phone.window.heading("Einstellungen")
        self.shot("phone-german", phone)
        site.window.press("Deutsch")
        site.window.until(lambda: site.window.driver.find_element("tag name", "html").get_attribute("lang") == "de", "German")
        site.begin("Benutzername", "Passwort", "Anmelden")
        number = site.window.until(lambda: site.window.all("#number")[0].text, "die Zahl")
        phone.ring()
        phone.window.heading("Sind Sie das?")
        phone.type(number, "Zahl, die die Website zeigt")
        self.shot("phone-question-german", phone)
        phone.window.press("Bestätigen")
        phone.window.heading("Bestätigt")
        site.window.until(lambda: site.window.driver.current_url.endswith("/members"), "the members' page")
        self.shot("members-german", site)

    def shows_the_theatre(self):
        theatre = self.theatre
        found = theatre.state()["messages"]
        pairs = {(one.get("from"), one.get("to")) for one in found}
        for pair in [("website", "relay"), ("relay", "push service"), ("phone", "relay"), ("relay", "website")]:
            assert pair in pairs, f"{pair} is none of {pairs}"
        self.shot("theatre", theatre, scale=0.5)

    def run(self):
        steps = [
            self.signs_up, self.binds_the_phone, self.makes_recovery_codes, self.sets_up_an_app, self.logs_in_by_push,
            self.types_a_wrong_number, self.rejects, self.logs_in_by_app, self.logs_in_by_mail,
            self.logs_in_by_recovery_code, self.binds_a_second_phone, self.outlives_the_relay, self.reports_fraud,
            self.unlocks, self.speaks_german, self.shows_the_theatre,
        ]
        for step in steps:
            start = time.monotonic()
            step()
            self.browser.check_console()
            print(f"{step.__name__} {time.monotonic() - start:.1f} s", flush=True)
        assert not self.faults, "\n".join(self.faults)


def main(wish):
    with tempfile.TemporaryDirectory() as profile:
        browser = Browser(wish["chromium"], wish["driver"], profile)
        try:
            Tour(wish, browser).run()
        except BaseException:
            browser.driver.save_screenshot(os.path.join(wish["pictures"], "failed.png"))
            raise
        finally:
            browser.quit()


main(json.loads(sys.argv[1]))
