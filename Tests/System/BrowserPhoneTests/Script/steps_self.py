"""The steps of self-service: a person looks at the own account and reports a login, with a phone or by the link of a mail."""

from selenium.webdriver.common.by import By

from steps import account_settings, bind, open_request, show_rest, whole
from steps_attacks import MARKUP

CODES = [
    {"kind": "totp", "state": "active", "created_at": "2026-11-01T08:00:00.000Z"},
    {"kind": "mail", "state": "undeliverable", "created_at": "2026-11-01T08:00:00.000Z", "address": "k…@example.com"},
    {"kind": "recovery", "state": "active", "created_at": "2026-11-01T08:00:00.000Z", "left": 7},
    {"kind": "later", "state": "odd", "created_at": "2026-11-01T08:00:00.000Z"},
]


def begin(stage, name, username):
    """A phone with three logins: one approved, one rejected, and one that another phone has approved."""
    browser, relay = stage.browser(name), stage.near.relay
    browser.authenticator()
    device = bind(stage, browser, relay, relay.activate(username), name="Red phone", checks_owner=False)
    browser.press("I have written it down")
    if browser.named("Not now"):
        browser.press("Not now")
    relay.factors[username] = CODES
    for service, word in (("members", "Approve"), ("archive", "Reject")):
        challenge = relay.ask(username, number="", service=service, ip="192.0.2.7", place="Berlin, DE", user_agent="Firefox on Debian")
        browser.tab("home")
        open_request(browser, challenge)
        whole(browser)
        browser.press(word)
        browser.heading("Approved" if word == "Approve" else "Rejected")
        browser.press("Done")
    other = stranger(relay, username)
    return browser, device, other


def stranger(relay, username, details=(), **more):
    """A login that another phone, which was removed since, has approved."""
    challenge = relay.ask(username, number="", **{"service": "vault", "ip": "198.51.100.9", "place": "Nowhere, XX", **more}, details=list(details))
    with relay.changed:
        relay.challenges[challenge].update(login="success", factor="push", device="f" * 32, ended=relay.now())
        relay.changed.notify_all()
    return challenge


def part(browser, name):
    return browser.until(lambda: browser.driver.find_element(By.CSS_SELECTOR, f"#own-{name}").text, f"the part {name}")


def rows(browser):
    return browser.driver.find_elements(By.CSS_SELECTOR, "#own-logins li")


def whole_report(browser):
    show_rest(browser)
    assert browser.element("#report").is_enabled()


def own_account(stage):
    """a phone shows the own phones, factors and logins, all or those that it has approved"""
    browser, device, _ = begin(stage, "self", "kate")
    account_settings(browser, "The Shop")
    browser.press("Show phones, factors and logins")
    browser.heading("Your account")
    phones = part(browser, "devices")
    assert "Red phone" in phones and "this phone" in phones and "active" in phones and "Browser" in phones, phones
    factors = part(browser, "factors")
    for words in ("Authenticator app", "Mail", "k…@example.com", "not available", "Recovery codes", "7 unused", "later", "odd"):
        assert words in factors, (words, factors)
    told = [one.text for one in rows(browser)]
    assert [next(word for word in ("vault", "archive", "members") if word in one) for one in told] == ["vault", "archive", "members"], told
    assert "by a phone that was removed" in told[0] and "Nowhere, XX" in told[0] and "198.51.100.9" in told[0]
    assert "Not successful" in told[1] and "rejected" in told[1] and "by Red phone" in told[1]
    assert "Successful" in told[2] and "Berlin, DE" in told[2] and "Firefox on Debian" in told[2] and "The Shop" in told[2]
    stage.looks.look(browser, "50-own-account")
    browser.named("Show", "select")[0].send_keys("Approved with this phone")
    browser.until(lambda: len(rows(browser)) == 1 and "members" in rows(browser)[0].text, "the approved login")
    assert device["name"] == "Red phone"


def late_report(stage):
    """a login that has ended is shown whole before it is reported, the report is signed, and 409 counts as done"""
    browser, relay = stage.browser("self"), stage.near.relay
    details = [{"label": f"item {at}", "value": "A long description of something. " * 6} for at in range(14)]
    challenge = stranger(relay, "kate", details, user_agent="Old Browser", action="pay")
    open_own(browser)
    rows(browser)[0].find_element(By.TAG_NAME, "button").click()
    browser.heading("Was this not you?")
    for words in ("kate", "item 13", "pay", "vault", "198.51.100.9", "Nowhere, XX", "Old Browser", "Successful", "all your factors at The Shop are frozen"):
        browser.says(words)
    browser.says("You can answer when you have seen the whole request.")
    assert not browser.element("#report").is_enabled()
    browser.script("const one = document.getElementById('report'); one.disabled = false; one.click(); one.disabled = true;")
    assert (relay.frozen, relay.reported) == ([], []), "it was reported before it was seen whole"
    whole_report(browser)
    stage.looks.look(browser, "51-report")
    browser.press("Yes, freeze my account")
    browser.heading("Reported")
    assert relay.frozen == ["kate"] and relay.reported[0][1] == challenge
    browser.press("Done")
    browser.heading("Your account")
    # One phone reports a login once.
    browser.until(lambda: len(rows(browser)) == 4 and not rows(browser)[0].find_elements(By.TAG_NAME, "button"), "the reported login")
    # A login that meanwhile cannot be reported any more.
    rows(browser)[1].find_element(By.TAG_NAME, "button").click()
    browser.heading("Was this not you?")
    gone = next(one for one in relay.challenges.values() if one["username"] == "kate" and one["login"] == "success" and one["challenge"] != challenge and one["device"] == "f" * 32)
    del relay.challenges[gone["challenge"]]
    whole_report(browser)
    browser.press("Yes, freeze my account")
    browser.heading("Not reported")
    browser.press("Done")
    browser.tab("settings")
    browser.press("Last decisions")
    browser.says("Reported")


def open_own(browser):
    account_settings(browser, "The Shop")
    browser.press("Show phones, factors and logins")
    browser.until(lambda: rows(browser), "the logins")


def lost_phone(stage):
    """a lost phone is removed by its revocation code, and the list is fetched again"""
    browser, relay = stage.browser("self"), stage.near.relay
    lost = {"device": "e" * 32, "username": "kate", "jwk": {}, "thumbprint": "", "name": "Lost phone", "state": "active",
            "created": relay.now(), "revocation": "Abcdefghij-_12345678"}
    relay.devices[lost["device"]] = lost
    open_own(browser)
    browser.says("Lost phone")
    browser.fill("Code of the lost phone", "too short")
    browser.press("Remove the lost phone")
    browser.says("The code has 20 letters, digits, hyphens and underscores.")
    browser.fill("Code of the lost phone", " Abcdefghij-_12345678 ")
    browser.press("Remove the lost phone")
    browser.says("If a phone had this code, it is removed now")
    browser.until(lambda: "Lost phone" not in part(browser, "devices"), "the list without the lost phone")
    assert lost["state"] == "unbound" and "Red phone" in part(browser, "devices")
    stage.looks.look(browser, "52-lost-phone")


def older_relay(stage):
    """a relay that does not know the route hides the section"""
    browser, relay = stage.browser("self"), stage.near.relay
    relay.policy["account"] = False
    browser.reload()
    try:
        account_settings(browser, "The Shop")
        browser.press("Compare with the relay")
        browser.says("The clock of this device is right.")
        assert not browser.named("Show phones, factors and logins")
    finally:
        relay.policy["account"] = True
    browser.tab("home")
    account_settings(browser, "The Shop")
    browser.until(lambda: browser.named("Show phones, factors and logins"), "the section")


def hostile_account(stage):
    """markup in every text of the own account stays text"""
    browser, relay = stage.browser("self"), stage.near.relay
    relay.display_name, old = MARKUP, relay.display_name
    relay.factors["kate"] = [{"kind": MARKUP, "state": MARKUP, "created_at": MARKUP, "address": MARKUP, "left": MARKUP}]
    mine = next(one for one in relay.devices.values() if one["username"] == "kate" and one["state"] == "active")
    mine["name"], name = MARKUP, mine["name"]
    challenge = stranger(relay, "kate", [{"label": MARKUP, "value": MARKUP}], service=MARKUP, action=MARKUP, ip=MARKUP, place=MARKUP, user_agent=MARKUP)
    relay.challenges[challenge].update(factor=MARKUP, device=None, reason=MARKUP, login=MARKUP)
    open_own(browser)
    assert browser.text().count("<script>") >= 13, browser.text()
    rows(browser)[0].find_element(By.TAG_NAME, "button").click()
    browser.heading("Was this not you?")
    assert browser.text().count("<script>") >= 9
    assert browser.driver.title == "Twoefay"
    assert browser.script("return document.querySelectorAll('#screen img, #screen script').length") == 0
    stage.looks.look(browser, "53-hostile-account")
    relay.display_name, mine["name"] = old, name
    # Bytes of another website, or that hide something, cannot be reported.
    relay.challenges[challenge]["context"] = relay.challenges[challenge]["context"].replace(b'"shop"', b'"bank"')
    account_settings(browser, "The Shop")
    browser.press("Show phones, factors and logins")
    browser.until(lambda: len(rows(browser)) > 1 and not rows(browser)[0].find_elements(By.TAG_NAME, "button"), "no report")
    del relay.challenges[challenge]
    stage.close("self")


# Whatever could keep a text: the storage of the page, its caches and databases, and the address.
KEPT = """
(async () => {
  const kept = [location.href, document.documentElement.outerHTML, JSON.stringify({ ...localStorage }), JSON.stringify({ ...sessionStorage }), JSON.stringify(history.state)];
  for (const name of await caches.keys()) for (const request of await (await caches.open(name)).keys()) kept.push(request.url);
  for (const { name } of await indexedDB.databases()) kept.push(`database ${name}`);
  for (const one of await navigator.serviceWorker.getRegistrations()) kept.push(`worker ${one.scope}`);
  return kept.join(" ");
})().then(done);
"""


def linked_account(stage):
    """the link of a mail shows the account without a phone, leaves the address at once, and is kept nowhere"""
    relay = stage.near.relay
    browser = stage.browser("linked")
    relay.activate("liam")
    relay.factors["liam"] = CODES
    challenge = stranger(relay, "liam", details=[], user_agent="Old Browser")
    opened = relay.ask("liam", number="", service="open")
    link = relay.link("liam")
    browser.open(f"{stage.near.origin}/phone/#account={link}")
    browser.heading("Your account")
    browser.says("You have opened this page by a link from a mail.")
    browser.says("Nowhere, XX")
    assert browser.driver.current_url == f"{stage.near.origin}/phone/"
    kept = browser.ask(KEPT)
    assert link not in kept and "database" not in kept and "worker" not in kept, kept
    assert not browser.driver.find_elements(By.CSS_SELECTOR, "#tabs, #skip")
    stage.looks.look(browser, "54-linked-account")
    # An open login can be reported, too.
    assert "Open" in rows(browser)[0].text and rows(browser)[0].find_elements(By.TAG_NAME, "button"), rows(browser)[0].text
    relay.end(opened)
    del relay.challenges[opened]
    browser.open(f"{stage.near.origin}/phone/#account={link}")
    browser.until(lambda: len(rows(browser)) == 1, "the login")
    length = browser.script("return history.length")
    rows(browser)[0].find_element(By.TAG_NAME, "button").click()
    browser.heading("Was this not you?")
    browser.says("Old Browser")
    whole_report(browser)
    stage.looks.look(browser, "55-linked-report")
    browser.press("Do not report it")
    browser.heading("Your account")
    browser.until(lambda: rows(browser), "the logins")
    rows(browser)[0].find_element(By.TAG_NAME, "button").click()
    whole_report(browser)
    browser.press("Yes, freeze my account")
    browser.heading("Reported")
    assert relay.frozen[-1] == "liam" and relay.reported[-1] == ("link", challenge)
    browser.press("Done")
    browser.until(lambda: rows(browser) and not rows(browser)[0].find_elements(By.TAG_NAME, "button"), "the reported login")
    browser.fill("Code of the lost phone", "A" * 20)
    browser.press("Remove the lost phone")
    browser.says("If a phone had this code, it is removed now")
    # Who leaves comes to the app, and neither back nor a reload shows the account.
    browser.press("Leave this page")
    browser.says("This app confirms your logins")
    browser.reload()
    browser.says("This app confirms your logins")
    assert browser.script("return history.length") <= length and link not in browser.ask(KEPT)


def refused_account_links(stage):
    """a link that is expired, forged or damaged shows nothing, and one that an open app gets works"""
    browser, relay = stage.browser("linked"), stage.near.relay
    for link, words in (
        (relay.link("liam", life=-1), "This link is no longer valid"), (relay.link("liam", key=bytes(32)), "This link is no longer valid"),
        ("a.b", "The link is damaged."), ("<img>", "The link is damaged."),
    ):
        browser.open(f"{stage.near.origin}/phone/#account={link}")
        browser.heading("Your account")
        browser.says(words)
        assert browser.driver.current_url == f"{stage.near.origin}/phone/" and not rows(browser)
    stage.looks.look(browser, "56-linked-over")
    relay.policy["account"] = False
    browser.open(f"{stage.near.origin}/phone/#account={relay.link('liam')}")
    browser.says("The relay of this website does not offer this yet.")
    relay.policy["account"] = True
    browser.open(f"{stage.near.origin}/phone/")
    browser.heading("Requests")
    browser.script("location.href = arguments[0]", f"{stage.near.origin}/phone/#account={relay.link('liam')}")
    browser.heading("Your account")
    browser.until(lambda: rows(browser), "the logins")
    assert browser.driver.current_url == f"{stage.near.origin}/phone/"
    browser.tab("home")
    browser.heading("Requests")
    stage.close("linked")


def early_fragment(stage):
    """the link leaves the address even if the app cannot be loaded"""
    browser, relay = stage.browser("plain"), stage.near.relay
    browser.cdp("Network.enable", {})
    browser.cdp("Network.setBlockedURLs", {"urls": ["*/phone/app.js"]})
    link = relay.link("liam")
    browser.driver.get("about:blank")
    browser.driver.get(f"{stage.near.origin}/phone/#account={link}")
    browser.until(lambda: browser.driver.current_url == f"{stage.near.origin}/phone/", "the address without the link")
    assert browser.script("return document.documentElement.dataset.ready ?? null") is None
    browser.cdp("Network.setBlockedURLs", {"urls": []})
    # The browser tells of the file that was blocked.
    browser.complaints()


def linked_without_storage(stage):
    """the page of a link needs neither storage nor a service worker, and is German where the browser is"""
    browser, relay = stage.browser("plain"), stage.near.relay
    browser.cdp("Page.addScriptToEvaluateOnNewDocument", {"source": """
        Object.defineProperty(Navigator.prototype, 'serviceWorker', { value: undefined });
        Object.defineProperty(window, 'indexedDB', { value: undefined });
        Object.defineProperty(Navigator.prototype, 'languages', { value: ['de-AT'] });
    """})
    browser.open(f"{stage.near.origin}/phone/#account={relay.link('liam')}")
    browser.heading("Ihr Konto")
    browser.says("durch ein entferntes Telefon")
    stage.looks.look(browser, "57-linked-german")
    stage.close("plain")


ALL = (
    own_account, late_report, lost_phone, older_relay, hostile_account, linked_account, refused_account_links, early_fragment, linked_without_storage)
