"""The steps of a login: bind by a link, approve, deny, report, and everything around a request."""

from urllib.parse import urlencode

from selenium.webdriver.common.by import By


def link(server, values):
    return f"{server.origin}/phone/#{urlencode(values)}"


def bind(stage, browser, relay, values, name="My phone", checks_owner=True, at=None):
    """Opens the link and adds the phone; returns the device at the relay."""
    browser.open(link(at or stage.near, values))
    browser.heading("Add this phone?")
    assert browser.driver.current_url.endswith("/phone/"), "the code is still in the address bar"
    browser.fill("Name of this phone", name)
    if not checks_owner:
        browser.element("#owner-check").click()
    browser.press("Add this phone")
    browser.heading("Phone added")
    device = relay.devices[relay.activations[values["code"]]["device"]]
    assert browser.element("#revocation-code").text == device["revocation"]
    return device


def open_request(browser, challenge):
    browser.until(lambda: browser.driver.find_element(By.CSS_SELECTOR, f"[data-challenge='{challenge}']").click() or True, "the request")


def account_settings(browser, name):
    browser.tab("settings")
    browser.heading("Settings")
    browser.press(f"{name}…", "#screen .entry")


def buttons(browser):
    return {one.get_attribute("data-word"): one for one in browser.driver.find_elements(By.CSS_SELECTOR, ".answers button")}


def whole(browser):
    """Scrolls to the end of the request, as a person does, until the answers can be pressed."""
    def look():
        browser.script("const one = document.getElementById('screen'); one.scrollTop += one.clientHeight / 2;")
        return all(one.is_enabled() for one in buttons(browser).values())
    browser.until(look, "the whole request")


def show_rest(browser):
    """Goes from one part that was not seen to the next, by the button for that."""
    def look():
        found = browser.named("Show the rest")
        if found:
            found[0].click()
        return not found
    browser.until(look, "the rest")


def first_account(stage):
    """a link is opened, the fragment goes, and the phone is bound with a passkey"""
    browser = stage.browser("one")
    browser.authenticator()
    browser.stub_pushes(stage.near.origin)
    browser.open(f"{stage.near.origin}/phone/")
    browser.says("This app confirms your logins")
    stage.looks.look(browser, "01-empty")
    relay = stage.near.relay
    values = relay.activate()
    browser.open(link(stage.near, values))
    browser.heading("Add this phone?")
    stage.looks.look(browser, "02-consent")
    device = bind(stage, browser, relay, values)
    assert device["name"] == "My phone" and device["app"] == stage.near.origin
    assert device["passkey"]["rp"] == "localhost"
    stage.looks.look(browser, "03-bound")
    browser.press("I have written it down")
    browser.heading("Requests")
    browser.until(lambda: relay.reports, "the report of the phone")
    assert relay.reports[0]["app_version"] == "1.0.0"
    browser.until(lambda: device["dev_token"], "the subscription")
    keys = browser.ask("""
        indexedDB.open("twoefay-phone").onsuccess = ({ target: { result } }) => {
          result.transaction("phones").objectStore("phones").getAll().onsuccess = ({ target: { result: [phone] } }) =>
            done([phone.key.extractable, phone.agreementKey.extractable, "code" in phone, "websiteKey" in phone]);
        };
    """)
    assert keys == [False, False, False, False], keys


def approve(stage):
    """a request is shown whole, and approved with the number and the check of the owner"""
    browser, relay = stage.browser("one"), stage.near.relay
    challenge = relay.ask(
        service="members", action="pay", ip="192.0.2.7", place="Berlin, DE", user_agent="Firefox on Debian", request="abc123",
        details=[{"label": "amount", "value": "12.00 EUR"}, {"label": "to", "value": "Zoë Müller"}])
    browser.says("The Shop")
    browser.until(lambda: browser.driver.find_element(By.CSS_SELECTOR, f"[data-challenge='{challenge}']"), "the request")
    stage.looks.look(browser, "04-home-with-request")
    open_request(browser, challenge)
    browser.heading("Do you agree?")
    for words in ("alice", "members", "pay", "12.00 EUR", "Zoë Müller", "192.0.2.7", "Berlin, DE", "Firefox on Debian"):
        browser.says(words)
    whole(browser)
    stage.looks.look(browser, "05-request")
    sizes = {(one.size["width"], one.size["height"]) for one in buttons(browser).values()}
    assert len(sizes) == 1 and len(buttons(browser)) == 3, sizes
    browser.press("Approve")
    browser.says("The website shows a number with 2 digits.")
    browser.fill("Number on the website", "47")
    browser.press("Approve")
    browser.heading("Approved")
    stage.looks.look(browser, "06-approved")
    told = relay.decided(challenge)
    assert told["decision"] == "approve" and told["uv"] == "passcode" and told["request"] == "abc123", told
    browser.press("Done")


def wrong_number(stage):
    """a wrong number ends the request"""
    browser, relay = stage.browser("one"), stage.near.relay
    challenge = relay.ask()
    open_request(browser, challenge)
    whole(browser)
    browser.fill("Number on the website", "48")
    browser.press("Approve")
    browser.heading("Not approved")
    browser.press("Done")


def deny_and_report(stage):
    """denying needs neither number nor owner, and a report says first what it does"""
    browser, relay = stage.browser("one"), stage.near.relay
    first, second = relay.ask(), relay.ask(service="archive")
    open_request(browser, first)
    whole(browser)
    browser.press("Reject")
    browser.heading("Rejected")
    told = relay.decided(first)
    assert told["decision"] == "deny" and told["uv"] == "none" and "number" not in told
    browser.press("Done")
    open_request(browser, second)
    whole(browser)
    browser.press("This wasn't me")
    browser.says("all your factors at The Shop are frozen")
    stage.looks.look(browser, "07-report")
    browser.press("Back", "dialog button")
    assert not any(one["challenge"] == second for one in relay.decisions), "a report was sent before it was confirmed"
    browser.press("This wasn't me")
    browser.press("Yes, freeze my account")
    browser.heading("Reported")
    assert relay.decided(second)["decision"] == "fraud"
    browser.press("Done")


def not_whole(stage):
    """no answer can be given before the whole request was on the screen"""
    browser, relay = stage.browser("one"), stage.near.relay
    details = [{"label": f"item {at}", "value": "A long description of something. " * 6} for at in range(14)]
    challenge = relay.ask(number="", details=[*details, {"label": "last", "value": "the end"}])
    open_request(browser, challenge)
    browser.says("You can answer when you have seen the whole request.")
    stage.looks.look(browser, "08-not-whole")
    browser.script("document.getElementById('screen').scrollTop = 0")
    # What the button for the rest covers counts as unseen, and nothing shows below it.
    edges = browser.script("""
        const [screen, rest] = [document.getElementById("screen"), document.querySelector(".rest")].map((one) => one.getBoundingClientRect().bottom);
        return [screen, rest];
    """)
    assert abs(edges[0] - edges[1]) < 1, edges
    assert not any(one.is_enabled() for one in buttons(browser).values())
    # A script that presses a disabled button, or submits the form, sends nothing either.
    browser.script("""
        for (const one of document.querySelectorAll(".answers button")) { one.disabled = false; one.click(); }
        document.querySelector("form").requestSubmit();
    """)
    assert not any(one["challenge"] == challenge for one in relay.decisions)
    assert browser.script("return document.querySelector('h1').innerText") == "Is this you?"

    show_rest(browser)
    assert all(one.is_enabled() for one in buttons(browser).values())
    browser.press("Reject")
    browser.heading("Rejected")
    relay.decided(challenge)
    browser.press("Done")


def ended_and_several(stage):
    """several requests are listed, and one that ends goes from list and screen"""
    browser, relay = stage.browser("one"), stage.near.relay
    first, second = relay.ask(service="one"), relay.ask(service="two")
    browser.until(lambda: len(browser.driver.find_elements(By.CSS_SELECTOR, "[data-challenge]")) == 2, "two requests")
    open_request(browser, first)
    relay.end(first)
    browser.heading("Request closed")
    browser.press("Done")
    browser.until(lambda: len(browser.driver.find_elements(By.CSS_SELECTOR, "[data-challenge]")) == 1, "one request")
    relay.end(second)
    browser.until(lambda: not browser.driver.find_elements(By.CSS_SELECTOR, "[data-challenge]"), "no request")


def push(stage):
    """a push announces a request and nothing more, and its only action opens the app"""
    browser, relay = stage.browser("one"), stage.near.relay
    challenge = relay.ask()
    found = browser.notified(stage.near.origin, {
        "title": "The Shop", "loc-key": "TWOEFAY_LOGIN_SERVICE_PLACE_IP", "loc-args": ["members", "Berlin, DE", "192.0.2.7"], "challenge": challenge})
    # A repetition takes the place of what it repeats.
    assert found == [["The Shop", "Is this you, at members, from Berlin, DE (192.0.2.7)?", ["open"]]], found
    found = browser.notified(
        stage.near.origin, {"title-loc-key": "TWOEFAY_TITLE", "loc-key": "TWOEFAY_LOGIN", "challenge": "c2"})
    assert found == [["Login request", "Is this you?", ["open"]]], found
    # What opens the app from the notification shows what the relay says.
    browser.open(f"{stage.near.origin}/phone/#open={challenge}")
    browser.heading("Is this you?")
    whole(browser)
    browser.press("Reject")
    browser.heading("Rejected")
    browser.press("Done")


ALL = (first_account, approve, wrong_number, deny_and_report, not_whole, ended_and_several, push)
