"""An order among the members' pages: the phone shows what is bought and what it costs, and signs just that."""

from datetime import datetime


def pays(tour):
    site, phone = tour.site, tour.phone
    before = datetime.now()
    asked = orders(tour)
    lines = phone.shown()
    tour.looks.shot("phone-payment", phone)
    phone.window.says("The Shop asks")
    at = datetime.strptime(lines.pop("Time"), "%I:%M:%S %p")
    # The day is not shown, and may have ended.
    passed = (at - before.replace(microsecond=0)).seconds
    assert passed <= (datetime.now() - before).total_seconds() + 1, f"asked at {at}"
    assert lines == {
        "Account": "ada", "Service": "The Shop", "Action": "Payment", "article": "Kettle", "amount": "38.00 EUR",
        "Place": "This machine", "IP address": "127.0.0.1", "Browser": "Chrome on Linux",
    }, lines
    phone.type(asked)
    phone.window.press("Approve")
    phone.window.heading("Approved")
    phone.window.press("Done")
    site.window.heading("Members")
    site.window.says("Paid: Kettle, 38.00 EUR. Your phone has signed for it.")
    tour.looks.shot("paid", site)


def pays_not(tour):
    """The phone says no, and whoever ordered stays logged in."""
    site, phone = tour.site, tour.phone
    orders(tour)
    phone.window.press("Reject")
    phone.window.heading("Rejected")
    phone.window.press("Done")
    site.window.heading("Not confirmed")
    site.window.says("This was rejected on your phone.")
    site.window.press("Back")
    site.window.heading("Members")
    assert "Paid" not in site.window.text()


def orders(tour):
    """Until the phone asks: the website's number."""
    site, phone = tour.site, tour.phone
    site.window.press("Buy: Kettle")
    number = site.number()
    assert not site.window.named("Use a code instead"), "only a phone shows what is signed"
    phone.ring()
    phone.window.heading("Do you agree?")
    return number
