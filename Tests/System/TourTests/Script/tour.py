"""The tour through the demo, step by step: tour.py WISH, a JSON text with the demo's addresses and what to use.

Prints a line for each step. Ends with 0, or with what was not as it should be.
"""

import contextlib
import json
import os
import re
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__))))

import closer  # noqa: E402
import joining  # noqa: E402
import logins  # noqa: E402
import paying  # noqa: E402
import troubles  # noqa: E402
from browser import Browser  # noqa: E402
from looks import Looks  # noqa: E402
from people import Dashboard, Phone, Website  # noqa: E402

STEPS = [
    joining.signs_up, joining.binds_the_phone, joining.makes_recovery_codes, joining.sets_up_an_app,
    logins.logs_in_by_push, paying.pays, paying.pays_not, logins.types_a_wrong_number, logins.rejects, logins.logs_in_by_app,
    troubles.logs_in_by_mail, logins.logs_in_by_recovery_code, joining.binds_a_second_phone,
    troubles.outlives_the_relay, troubles.reports_fraud, troubles.unlocks, troubles.guesses_too_often,
]
# What no store can change.
FURTHER_STEPS = [
    logins.logs_in_by_keyboard, troubles.waits_for_the_phones, troubles.waits_for_a_slow_text,
    closer.logs_in_as_wide_as_a_phone, closer.logs_in_within_the_dashboard,
]
LAST_STEPS = [closer.shows_the_dashboard, closer.speaks_german]


class Tour:
    def __init__(self, wish, browser):
        self.wish = wish
        self.browser = browser
        self.looks = Looks(wish["pictures"], wish.get("axe"))
        self.expected = ()
        self.unproved = 0
        self.dashboard = Dashboard(browser.window(1680, 900), wish["dashboard"])
        self.site = Website(browser.window(800, 760), wish["website"])
        self.phone = Phone(browser.window(500, 960), wish["phone"])

    def check_console(self):
        """Nothing was refused by a policy, no script failed, and what could not be loaded was to fail."""
        faults = []
        for source, text in self.browser.complaints():
            if source == "network" and re.search(r"/relay/\w+ - .*status of 401", text):
                self.unproved += 1
            elif source != "network" or not any(re.search(one, text) for one in self.expected):
                faults.append(f"{source}: {text}")
        assert not faults, "\n".join(faults)
        # The relay wants a nonce in what a page proves with, and a new one when it has been started again. The dashboard has
        # heard it say so, and the page says it all again: any other 401 is a fault.
        self.dashboard.listen()
        meant = sum("use_dpop_nonce" in "".join(one.get("fields", [])) for one in self.dashboard.said)
        assert self.unproved <= meant, f"{self.unproved} times 401, and {meant} times for want of a nonce"

    @contextlib.contextmanager
    def meets(self, *failures):
        """What cannot be loaded meanwhile, as the console tells it, is to fail."""
        self.check_console()
        self.expected = failures
        yield
        self.check_console()
        self.expected = ()

    def run(self):
        looks_closer = self.wish.get("axe") is not None
        for step in STEPS + (FURTHER_STEPS if looks_closer else []) + LAST_STEPS:
            start = time.monotonic()
            step(self)
            self.check_console()
            print(f"{step.__name__} {time.monotonic() - start:.1f} s", flush=True)
        assert not self.looks.faults, "\n".join(self.looks.faults)


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
