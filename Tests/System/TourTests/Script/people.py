"""Who and what takes part in the tour: the website in a browser, phones, and the dashboard with its switches."""

import re

from browser import Frame

class Website:
    def __init__(self, window, address):
        self.window = window
        self.address = address

    def sign_up(self, name, password, mail, number):
        window = self.window
        window.open(self.address)
        window.press("Sign up", "main a")
        window.heading("Sign up")
        window.fill("User name", name)
        window.fill("Password", password)
        window.fill("Email address", mail)
        window.fill("Mobile number (optional)", number)
        self.person = (name, password)
        window.press("Sign up", "main button")
        window.heading("Add a phone")

    def log_out(self, button="Log out", words="You are logged out."):
        self.window.press(button)
        self.window.says(words)

    def begin(self, user="User name", password="Password", button="Log in"):
        """Name and password; from then on it is the phone's turn."""
        window = self.window
        window.press(button, "nav a")
        window.heading(button)
        window.fill(user, self.person[0])
        window.fill(password, self.person[1])
        window.press(button, "main button")

    def number(self):
        """As it stands there large, or beside the field for a code where nobody has looked at the phone."""
        def look():
            large = self.window.all("#number")
            if large:
                return large[0].text
            small = re.search(r"with the number (\d+)", self.window.text())
            return small and small.group(1)
        return self.window.until(look, "the number")

    def is_in(self, words):
        self.window.heading("Members")
        self.window.says(words)

    def use_code(self):
        """To the page for codes: by the link, or because nothing came of the phone."""
        def look():
            if self.window.driver.find_element("tag name", "h1").text == "Enter a code":
                return True
            for link in self.window.named("Use a code instead"):
                link.click()
            return None
        self.window.until(look, "the page for codes")

    def enter(self, code, label="Code", button="Confirm"):
        self.window.fill(label, code)
        self.window.press(button, "main button")


class Phone:
    def __init__(self, window, address=None):
        """Without an address: its page is there already."""
        self.window = window
        if address:
            window.open(address)
        window.heading("Accounts")
        # A mail that has come lies on top until somebody wipes it away.
        window.clear = lambda: window.all("section:not([data-challenge]) > .row .quiet")[0].click()

    def bind(self):
        self.window.press("Accounts")
        self.window.heading("Accounts")
        self.window.press("Scan the code on the website")
        self.window.heading("Add this phone?")
        self.window.press("Add this phone")

    def has_rung(self):
        self.window.front()
        return bool(self.window.all("[data-challenge]"))

    def rings(self):
        self.window.until(lambda: self.window.all("[data-challenge]"), "a notification")

    def ring(self):
        """It rings, and what it rang for is opened."""
        window = self.window
        self.rings()
        window.until(lambda: window.all("[data-challenge] .primary")[0].click() or True, "Open")
        window.until(lambda: window.all(".answers"), "the question")

    def ignore(self):
        """It has rung, and nobody needs it any more."""
        self.rings()
        window = self.window
        window.until(lambda: window.all("[data-challenge] .quiet")[0].click() or True, "Dismiss")

    def type(self, number, label="Number on the website"):
        self.window.fill(label, number)

    def approve(self, number):
        self.ring()
        self.type(number)
        self.window.press("Approve")
        self.window.heading("Approved")
        self.window.press("Done")

    def shown(self):
        """What is asked, line by line."""
        labels, values = self.window.all(".facts dt"), self.window.all(".facts dd")
        return {label.text: value.text for label, value in zip(labels, values, strict=True)}

    def guess(self, number, look=lambda: None):
        """Another number than that; `look` at what the phone says of it."""
        self.ring()
        self.type(f"{(int(number) + 1) % 100:02}")
        self.window.press("Approve")
        self.window.heading("Wrong number")
        look()
        self.window.press("Done")

    def code(self, other_than=None):
        """What the app shows now, and has not been used."""
        self.window.press("Codes")
        self.window.heading("Codes")

        def look():
            shown = self.window.all("output")[0].text.replace(" ", "")
            return shown if shown and shown != other_than else None
        return self.window.until(look, "the code of the app")

    def messages(self, kind):
        """Mails or text messages (`sms`), the newest first."""
        self.window.front()
        if not self.window.named("Messages", "h1"):
            self.window.press("Messages…")
            self.window.heading("Messages")
        return [one.text for one in self.window.all(f'[data-kind="{kind}"]')]

    def sent_code(self, kind, count):
        """Out of the newest message of that kind, once there are more than `count`."""
        def look():
            found = self.messages(kind)
            code = len(found) > count and re.search(r"\b(\d{6,8})\b", found[0])
            return code and code.group(1)
        return self.window.until(look, f"a code by {kind}")


class Dashboard:
    # What a switch is called, and what the demo says of it when it is pressed.
    SWITCHES = {
        "push": ("Push service down", "down"), "phone": ("Phones offline", "offline"),
        "sms": ("Slow text messages", "slow"), "relay": ("Relay killed", "down"),
    }

    def __init__(self, window, address):
        self.window = window
        self.said = []
        window.open(address)
        window.says("relay running")

    def listen(self):
        """What has been said since, after all that was; and how the switches stand."""
        last = self.said[-1]["n"] if self.said else 0
        # Where nothing is new it would wait: so the last one is asked for once more.
        told = self.window.ask(f"fetch('/feed?after={max(0, last - 1)}').then((answer) => answer.json()).then(done);")
        self.said += [one for one in told["messages"] if one["n"] > last]
        return told["switches"]

    def notes(self, *words):
        """Not what was said, but what has happened."""
        def look():
            return any(all(word in note.text for word in words) for note in self.window.all("#messages .note"))
        self.window.until(look, " ".join(words))

    def switch(self, name, state, press=None):
        """With the mouse, or as it is said."""
        title, broken = self.SWITCHES[name]
        (press or self.window.press)(title)

        def look():
            (button,) = self.window.named(title, "[role=switch]")
            return self.listen()[name] == state and button.get_attribute("aria-checked") == str(state == broken).lower()
        self.window.until(look, f"{name} {state}")

    def frames(self):
        """Website and phone as the dashboard shows them, from anew."""
        self.window.reload()
        return Website(Frame(self.window, "#website"), None), Phone(Frame(self.window, "#panel-1 iframe"))
