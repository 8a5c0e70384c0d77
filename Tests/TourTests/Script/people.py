"""Who and what takes part in the tour: the website in a browser, phones, and the theatre with its switches."""

import re


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
        window.fill("Mail address", mail)
        window.fill("Mobile number (optional)", number)
        self.person = (name, password)
        window.press("Sign up", "main button")
        window.heading("Bind a phone")

    def log_out(self):
        self.window.press("Log out")
        self.window.says("You are logged out.")

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
    def __init__(self, window, address):
        self.window = window
        window.open(address)
        window.heading("Accounts")
        # A mail that has come lies on top until somebody wipes it away.
        window.clear = lambda: window.all("section:not([data-challenge]) > .row .quiet")[0].click()

    def bind(self):
        self.window.press("Accounts")
        self.window.heading("Accounts")
        self.window.press("Scan what the website shows")
        self.window.heading("Bind this phone?")
        self.window.press("Bind this phone")

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

    def type(self, number, label="Number that the website shows"):
        self.window.fill(label, number)

    def approve(self, number):
        self.ring()
        self.type(number)
        self.window.press("Approve")
        self.window.heading("Approved")
        self.window.press("Done")

    def code(self, other_than=None):
        """What the app shows now, and has not been used."""
        self.window.press("Codes")
        self.window.heading("Codes")

        def look():
            shown = self.window.all("output")[0].text.replace(" ", "")
            return shown if shown and shown != other_than else None
        return self.window.until(look, "the code of the app")

    def mails(self):
        self.window.front()
        if not self.window.named("Messages", "h1"):
            self.window.press("Messages…")
            self.window.heading("Messages")
        return [one.text for one in self.window.all('[data-kind="mail"]')]

    def mailed_code(self, count):
        """Out of the newest mail, once there are more than `count`."""
        def look():
            mails = self.mails()
            found = len(mails) > count and re.search(r"^\s*(\d{6,8})\s*$", mails[0], re.MULTILINE)
            return found and found.group(1)
        return self.window.until(look, "a mail with a code")


class Theatre:
    # What a switch is called, and is what the demo tells of it.
    SWITCHES = {"push": "Push service down", "relay": "Relay killed"}

    def __init__(self, window, address):
        self.window = window
        window.open(address)
        window.says("relay up")

    def state(self):
        # Asked from before the first message it answers at once.
        return self.window.ask("fetch('/feed?after=0').then((answer) => answer.json()).then(done);")

    def switch(self, name, state):
        self.window.press(self.SWITCHES[name], "[role=switch]")
        self.window.until(lambda: self.state()["switches"][name] == state, f"{name} {state}")
