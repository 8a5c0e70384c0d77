"""conversation.py [PICTURES [STEP …]]: a person uses the app in Chromium, over TLS, with relays that verify every proof.

The packages of dev/need must be in PYTHONPATH. Prints the steps, and ends with an error if one fails, if a screen is not
accessible, if the policy of the page was violated, or if a relay has seen anything that the protocol does not allow.

conversation.py --docs takes the pictures of docs/phones/web-app.md again, and runs only the steps that show them.
"""

import os
import shutil
import sys
import tempfile
import traceback

from browser import Browser, Looks
from server import App, make_certificate, serve
from statements import spki_pin
import steps
import steps_accounts
import steps_attacks
import steps_owner
import steps_self
import steps_updates

# The pictures of the page, by the names of the screens, and the steps that lead there.
SHOWN = {"02-consent": "bind", "05-request": "request", "06-approved": "approved", "07-report": "not-me", "15-codes": "codes", "50-own-account": "account"}
SHOWING = ("first_account", "approve", "deny_and_report", "codes", "own_account")
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../..")


class Stage:
    """The servers, the browsers and the looks of one run."""

    def __init__(self, directory, pictures, shown):
        self.directory = directory
        certificate, path = make_certificate(directory)
        self.pin = spki_pin(certificate)
        self.app = App([])
        self.near = serve(path, "localhost", self.app)
        self.far = serve(path, "relay.localhost", None, identity="https://bank.example.net", website="bank", display_name="Zoë’s Bank")
        # An app that the bank has chosen, at a host that no relay serves: only there may a link have k.
        self.chosen = serve(path, "app.localhost", self.app)
        self.app.relays += [self.near.origin, self.far.origin]
        self.far.RequestHandlerClass.origins = (self.near.origin, self.chosen.origin)
        self.looks = Looks(pictures, os.path.join(ROOT, ".build/python/axe_playwright_python/axe.min.js"), shown)
        self.browsers = {}

    @property
    def servers(self):
        return self.near, self.far, self.chosen

    def browser(self, name, *more):
        if name not in self.browsers:
            profile = os.path.join(self.directory, name)
            self.browsers[name] = Browser(shutil.which("chromium"), shutil.which("chromedriver"), profile, self.pin, more)
        return self.browsers[name]

    def close(self, name):
        self.browsers.pop(name).quit()

    def end(self):
        for browser in self.browsers.values():
            browser.quit()


def main(pictures=None, *only):
    shown = {}
    if pictures == "--docs":
        shown = {screen: os.path.join(ROOT, "docs/phones/pictures", f"{name}.webp") for screen, name in SHOWN.items()}
        pictures, only = None, SHOWING
    for directory in {pictures, *map(os.path.dirname, shown.values())} - {None}:
        os.makedirs(directory, exist_ok=True)
    failed = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        stage = Stage(directory, pictures, shown)
        try:
            for step in (*steps.ALL, *steps_owner.ALL, *steps_accounts.ALL, *steps_self.ALL, *steps_updates.ALL, *steps_attacks.ALL):
                if only and step.__name__ not in only:
                    continue
                try:
                    step(stage)
                    print(f"ok: {step.__doc__}", flush=True)
                except Exception:
                    failed.append(step.__doc__)
                    traceback.print_exc()
                    print(f"FAILED: {step.__doc__}", flush=True)
            faults = [fault for server in stage.servers for fault in server.faults] + stage.looks.faults
            for browser in stage.browsers.values():
                # The frame of the hostile website was refused, as it should be.
                faults += [one for one in browser.complaints() if "frame-ancestors" not in one
                           and any(words in one for words in ("Content Security Policy", "Trusted", "Uncaught"))]
        finally:
            stage.end()
    print("\n".join(faults))
    print(f"{len(failed)} steps failed, {len(faults)} faults, {len(stage.looks.seen)} screens looked at")
    return 1 if failed or faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
