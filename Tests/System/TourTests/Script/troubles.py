"""What is broken by a switch of the dashboard, or by somebody who knows a password; and how it is mended."""

from datetime import datetime, timedelta

import closer


def logs_in_by_mail(tour):
    """With the push service down."""
    site, phone, dashboard = tour.site, tour.phone, tour.dashboard
    site.log_out()
    dashboard.switch("push", "down")
    before = len(phone.messages("mail"))
    site.begin()
    site.use_code()
    site.window.press("Send an email to…")
    code = phone.sent_code("mail", before)
    tour.looks.shot("phone-mail", phone)
    site.enter(code)
    site.is_in("A code that we sent you let you in.")
    dashboard.switch("push", "up")


def waits_for_the_phones(tour):
    """They are offline: the website comes to codes by itself, and the phone rings when it is back."""
    site, phone, dashboard = tour.site, tour.phone, tour.dashboard
    site.log_out()
    dashboard.switch("phone", "offline")
    dashboard.notes("The phones are offline.")
    phone.window.says("This phone is offline.")
    site.begin()
    number = site.number()
    site.window.heading("Enter a code")
    assert not phone.has_rung(), "it is offline"
    tour.looks.shot("phone-offline", phone)
    dashboard.switch("phone", "online")
    dashboard.notes("The phones are online again.")
    phone.approve(number)
    site.is_in("Your phone let you in, and we have checked its signature.")


def waits_for_a_slow_text(tour):
    """The dashboard's switch is pressed without a mouse."""
    site, phone, dashboard = tour.site, tour.phone, tour.dashboard
    site.log_out()
    dashboard.switch("sms", "slow", dashboard.window.press_by_keyboard)
    start = dashboard.said[-1]["n"]
    before = len(phone.messages("sms"))
    site.begin()
    site.use_code()
    site.window.press("Send a text message to…")
    site.window.says("We have sent you a text message with a code.")
    dashboard.notes("The gateway holds this message for 20 seconds.")
    # There is time to look at something else.
    closer.speaks_german_in_the_dashboard(tour)
    site.enter(phone.sent_code("sms", before))
    site.is_in("A code that we sent you let you in.")
    phone.ignore()
    dashboard.listen()
    texts = [one for one in dashboard.said if one["n"] > start and "SMS gateway" in (one.get("from"), one.get("to"))]
    sent, came = (datetime.fromisoformat(one["at"]) for one in texts[:2])
    assert came - sent > timedelta(seconds=19), came - sent
    dashboard.switch("sms", "fast", dashboard.window.press_by_keyboard)


def outlives_the_relay(tour):
    """It is killed in the middle of a login."""
    site, phone, dashboard = tour.site, tour.phone, tour.dashboard
    with tour.meets(r"/relay/\w+ - .*status of 50[23]"):
        site.log_out()
        site.begin()
        number = site.number()
        phone.ring()
        dashboard.switch("relay", "down")
        phone.type(number)
        phone.window.press("Approve")
        phone.window.says("The same answer is sent again")
        tour.looks.shot("phone-waits", phone)
        site.window.says("The login service does not answer at the moment.")
        tour.looks.shot("relay-down", site)
        dashboard.switch("relay", "up")
        phone.window.heading("Approved")
        phone.window.press("Done")
        site.is_in("Your phone let you in, and we have checked its signature.")


def reports_fraud(tour):
    site, phone = tour.site, tour.phone
    site.log_out()
    site.begin()
    site.number()
    phone.ring()
    phone.window.press("This wasn't me")
    phone.window.says("Was it somebody else?")
    tour.looks.shot("phone-fraud", phone)
    phone.window.press("Yes, freeze my account")
    phone.window.heading("Reported")
    phone.window.press("Done")
    site.window.heading("You are not logged in")
    site.window.says("so your account is frozen")
    tour.looks.shot("fraud", site)


def unlocks(tour):
    site = tour.site
    site.window.press("Unlock")
    site.window.heading("Unlock")
    tour.looks.shot("unlock", site)
    site.enter(tour.codes[1], "Recovery code", "Unlock")
    site.window.says("Your account is unlocked. Please log in again.")


def guesses_too_often(tour):
    """Three wrong numbers, slower each time; then nobody gets in until the operator says so."""
    site, phone, dashboard = tour.site, tour.phone, tour.dashboard
    with tour.meets(r"/relay/success - .*status of 429"):
        for _ in range(3):
            site.begin()
            phone.guess(site.number())
            site.window.heading("You are not logged in")
    site.begin()
    site.window.says("There were too many wrong answers, so your account is locked.")
    tour.looks.shot("locked", site)
    site.window.press("Unlock")
    site.window.says("There were too many wrong numbers.")
    dashboard.window.press("Operator: unlock accounts")
    dashboard.notes("The operator has unlocked:", "ada")
    site.window.reload()
    site.window.says("Your account is unlocked. Please log in again.")
    site.begin()
    phone.approve(site.number())
    site.is_in("Your phone let you in, and we have checked its signature.")
