"""What a person does on several screens of the app in a browser."""

from steps import open_request, whole


def bound(browser, activation):
    """Opens the link of an activation, and agrees."""
    browser.open(activation["link"])
    browser.heading("Add this phone?")
    browser.press("Add this phone")


def settings(browser):
    browser.tab("settings")
    browser.heading("Settings")
    browser.element("#screen .entry").click()


def answer(browser, opened, number, heading, word="Approve", pin=None):
    open_request(browser, opened["challenge"])
    finish(browser, number, heading, word, pin)


def finish(browser, number, heading, word="Approve", pin=None):
    whole(browser)
    if number is not None:
        browser.fill("Number on the website", number)
    if pin is not None:
        browser.fill("PIN", pin)
    browser.press(word)
    browser.heading(heading)
    browser.press("Done")
