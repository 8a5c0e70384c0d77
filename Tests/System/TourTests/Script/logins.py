"""Logins, as they are when all works, by whatever way."""

from selenium.webdriver.common.keys import Keys


def logs_in_by_push(tour):
    site, phone = tour.site, tour.phone
    site.log_out()
    site.begin()
    number = site.number()
    tour.looks.shot("wait", site)
    phone.rings()
    tour.looks.shot("phone-rings", phone)
    phone.ring()
    for words in ("The Shop asks", "ada", "Members' area", "127.0.0.1"):
        phone.window.says(words)
    phone.window.press("Approve")
    phone.window.says("The website shows a number with 2 digits.")
    phone.type(number)
    tour.looks.shot("phone-question", phone)
    phone.window.press("Approve")
    phone.window.heading("Approved")
    tour.looks.shot("phone-approved", phone)
    phone.window.press("Done")
    site.is_in("Your phone let you in, and we have checked its signature.")
    tour.looks.shot("members", site)


def types_a_wrong_number(tour):
    site, phone = tour.site, tour.phone
    site.log_out()
    site.begin()
    phone.guess(site.number(), lambda: tour.looks.shot("phone-wrong-number", phone))
    site.window.heading("You are not logged in")
    site.window.says("The number entered on the phone was not the one shown here.")
    tour.looks.shot("wrong-number", site)


def rejects(tour):
    """Without a mouse."""
    site, phone = tour.site, tour.phone
    site.begin()
    site.number()
    phone.ring()
    phone.window.press_by_keyboard("Reject")
    phone.window.heading("Rejected")
    phone.window.press_by_keyboard("Done")
    site.window.heading("You are not logged in")
    site.window.says("This was rejected on your phone.")
    tour.looks.shot("rejected", site)


def logs_in_by_app(tour):
    site, phone = tour.site, tour.phone
    site.begin()
    site.use_code()
    tour.looks.shot("code", site)
    site.enter(phone.code(other_than=tour.used))
    site.is_in("A code from your authenticator app let you in.")
    phone.ignore()


def logs_in_by_recovery_code(tour):
    site = tour.site
    site.log_out()
    site.begin()
    site.use_code()
    site.window.press("I have a recovery code")
    site.window.heading("Enter a recovery code")
    tour.looks.shot("recovery", site)
    site.enter(tour.codes[0], "Recovery code")
    site.is_in("A recovery code let you in. It is used up.")
    tour.phone.ignore()


def logs_in_by_keyboard(tour):
    """From one end to the other."""
    site, phone = tour.site, tour.phone
    name, password = site.person
    site.window.press_by_keyboard("Log out")
    site.window.says("You are logged out.")
    site.window.press_by_keyboard("Log in")
    site.window.heading("Log in")
    tour.looks.check("log-in", site.window)
    site.window.fill_by_keyboard("User name", name)
    site.window.fill_by_keyboard("Password", password)
    site.window.press_by_keyboard("Log in", Keys.SPACE)
    number = site.number()
    phone.rings()
    phone.window.press_by_keyboard("Open", Keys.SPACE)
    phone.window.heading("Is this you?")
    phone.window.fill_by_keyboard("Number on the website", number)
    phone.window.press_by_keyboard("Approve", Keys.SPACE)
    phone.window.heading("Approved")
    phone.window.press_by_keyboard("Done")
    site.is_in("Your phone let you in, and we have checked its signature.")
