"""From nothing to an account with a phone, and with all the ways back that there are."""

import re

from people import Phone


def signs_up(tour):
    tour.site.sign_up("ada", "correct horse battery", "ada@example.com", "+436601234567")
    tour.looks.shot("sign-up", tour.site)


def binds_the_phone(tour):
    phone, site = tour.phone, tour.site
    phone.window.heading("Accounts")
    tour.looks.shot("phone-empty", phone)
    phone.window.press("Scan the code on the website")
    phone.window.heading("Add this phone?")
    tour.looks.shot("phone-bind", phone)
    phone.window.press("Add this phone")
    phone.window.heading("Phone added")
    tour.looks.shot("phone-bound", phone)
    phone.window.press("Done")
    phone.window.says("active")
    site.window.heading("My phones")
    site.window.says("Active, key verified")
    tour.looks.shot("phones", site)


def makes_recovery_codes(tour):
    site, phone = tour.site, tour.phone
    site.window.press("Recovery codes", "nav a")
    site.window.press("Make recovery codes")
    phone.ring()
    tour.looks.shot("phone-further", phone)
    phone.type(site.number())
    phone.window.press("Approve")
    phone.window.heading("Approved")
    phone.window.press("Done")
    site.window.says("These codes are shown only once.")
    tour.codes = [one.text for one in site.window.all("#codes code")]
    assert len(set(tour.codes)) == 10, tour.codes
    tour.looks.shot("recovery-codes", site)
    site.window.press("I have saved them")
    site.window.heading("Check your recovery codes")
    asked = int(re.search(r"code number (\d+)", site.window.text()).group(1))
    site.enter(tour.codes[asked - 1], "Recovery code")
    site.window.says("Your recovery codes are valid now.")


def sets_up_an_app(tour):
    site, phone = tour.site, tour.phone
    site.window.press("Authenticator app", "nav a")
    site.window.press("Set up an app")
    phone.approve(site.number())
    site.window.says("Enter the code that it shows.")
    tour.looks.shot("totp", site)
    phone.window.press("Accounts")
    phone.window.press("Scan the code on the website")
    phone.window.heading("Codes")
    tour.used = phone.code()
    tour.looks.shot("phone-codes", phone)
    site.enter(tour.used, "The app's code")
    site.window.says("Your authenticator app is set up.")


def binds_a_second_phone(tour):
    """The first one has to agree."""
    site, phone = tour.site, tour.phone
    site.window.press("My phones", "nav a")
    site.window.press("Add another phone")
    phone.ring()
    phone.type(site.number())
    tour.looks.shot("first-approves", phone)
    phone.window.press("Approve")
    phone.window.heading("Approved")
    phone.window.press("Done")
    site.window.heading("Add a phone")
    second = Phone(tour.browser.window(500, 960), tour.wish["phone_2"])
    second.bind()
    second.window.heading("Phone added")
    tour.looks.shot("second-bound", second)
    second.window.press("Done")
    site.window.heading("My phones")
    site.window.says("Phone 2")
    tour.looks.shot("two-phones", site)
