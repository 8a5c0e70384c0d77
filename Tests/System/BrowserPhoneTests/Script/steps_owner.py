"""The steps of what an approval has besides: the owner's check by a passkey, and the place of the phone."""

from steps import account_settings, bind, open_request, whole


def opened(browser, relay, username, **more):
    """Opens a request, sees it whole, and types its number."""
    challenge = relay.ask(username, **more)
    browser.tab("home")
    open_request(browser, challenge)
    whole(browser)
    browser.fill("Number on the website", "47")
    return challenge


def without_check(browser):
    browser.press("Approve")
    browser.says("The device did not confirm you")
    browser.press("Approve without the check")


def owner_fails(stage):
    """if the device does not verify its owner, nothing is sent until the person decides"""
    browser, relay = stage.browser("two"), stage.near.relay
    stage.authenticator = browser.authenticator()
    values = relay.activate("bob")
    bind(stage, browser, relay, values)
    browser.press("I have written it down")
    if browser.named("Not now"):
        browser.press("Not now")
    browser.verifies(stage.authenticator, False)
    challenge = opened(browser, relay, "bob")
    browser.press("Approve")
    browser.says("The device did not confirm you")
    stage.looks.look(browser, "09-owner")
    assert not any(one["challenge"] == challenge for one in relay.decisions)
    browser.press("Back", "dialog button")
    browser.says("Nothing was sent.")
    without_check(browser)
    browser.heading("Approved")
    assert relay.decided(challenge)["uv"] == "none"
    browser.press("Done")


def owner_demanded(stage):
    """if the website demands the check, an approval without it is refused in clear words, and one with it is taken"""
    browser, relay = stage.browser("two"), stage.near.relay
    relay.policy["needs_uv"] = True
    challenge = opened(browser, relay, "bob")
    without_check(browser)
    browser.says("The Shop did not accept this approval without the check.")
    browser.says("The relay says: The website requires user verification by passcode.")
    stage.looks.look(browser, "09-owner-demanded")
    assert not any(one["challenge"] == challenge for one in relay.decisions)
    browser.verifies(stage.authenticator, True)
    browser.press("Approve")
    browser.heading("Approved")
    assert relay.decided(challenge)["uv"] == "passcode"
    browser.press("Done")


def older_relay_without_check(stage):
    """a relay of an older version refuses the check, and the person can approve without it"""
    browser, relay = stage.browser("two"), stage.near.relay
    relay.policy.update(assertions=False, needs_uv=False)
    try:
        challenge = opened(browser, relay, "bob")
        browser.press("Approve")
        browser.says("The relay does not know this check")
        stage.looks.look(browser, "09-older-relay")
        browser.press("Back", "dialog button")
        browser.says("That did not work: the relay answered 400, invalid: invalid.")
        browser.press("Approve")
        browser.says("The relay does not know this check")
        browser.press("Approve without the check", "dialog button")
        browser.heading("Approved")
        assert relay.decided(challenge)["uv"] == "none"
        browser.press("Done")
    finally:
        relay.policy.update(assertions=True, needs_uv=True)


def passkey_lost(stage):
    """if the passkey was deleted from the device, the app says what to do, and rejecting still works"""
    browser, relay = stage.browser("two"), stage.near.relay
    browser.cdp("WebAuthn.clearCredentials", {"authenticatorId": stage.authenticator})
    challenge = opened(browser, relay, "bob")
    browser.press("Approve")
    browser.says("the passkey of this account may have been deleted from the device")
    browser.press("Approve without the check")
    browser.says("The Shop did not accept this approval without the check.")
    browser.press("Reject")
    browser.heading("Rejected")
    assert relay.decided(challenge)["uv"] == "none"
    browser.press("Done")
    relay.policy["needs_uv"] = False
    stage.close("two")


def no_passkey(stage):
    """a phone without a passkey says why a website that demands the check refuses it"""
    browser, relay = stage.browser("two-b"), stage.near.relay
    bind(stage, browser, relay, relay.activate("bea"))
    assert not browser.driver.find_elements("css selector", "#owner-check")
    browser.press("I have written it down")
    if browser.named("Not now"):
        browser.press("Not now")
    relay.policy["needs_uv"] = True
    challenge = opened(browser, relay, "bea")
    browser.press("Approve")
    browser.says("This phone was added without a fingerprint, face or screen lock")
    assert not any(one["challenge"] == challenge for one in relay.decisions)
    relay.policy["needs_uv"] = False
    browser.press("Approve")
    browser.heading("Approved")
    stage.close("two-b")


def place(stage):
    """a website that asks for the place gets it once the person agreed, rounded, and only if it is known well enough"""
    browser, relay = stage.browser("one"), stage.near.relay

    def at(setting, **values):
        browser.cdp("Browser.setPermission", {"origin": stage.near.origin, "permission": {"name": "geolocation"}, "setting": setting})
        browser.cdp("Emulation.setGeolocationOverride", {"latitude": 52.5163, "longitude": -0.0049, "accuracy": 40, **values})
        browser.reload()

    def approve(**more):
        challenge = opened(browser, relay, "alice", **more)
        browser.press("Approve")
        return challenge

    def told(challenge):
        browser.heading("Approved")
        browser.press("Done")
        return relay.decided(challenge).get("place")

    at("granted")
    assert told(approve()) is None, "the website did not ask"
    challenge = approve(asks_place=True)
    browser.says("Send the place of this phone?")
    stage.looks.look(browser, "26-place")
    # A question that was closed is no answer, and is asked again.
    browser.script("document.querySelector('dialog').close()")
    assert told(challenge) is None
    challenge = approve(asks_place=True)
    browser.press("Send the place", "dialog button")
    assert told(challenge) == "52.5,0.0"
    challenge = approve(asks_place=True)
    assert told(challenge) == "52.5,0.0", "the choice counts for later approvals, too"
    challenge = opened(browser, relay, "alice", asks_place=True)
    browser.says("Your approval tells The Shop where this phone is, to about 11 km.")
    browser.press("Reject")
    browser.heading("Rejected")
    assert "place" not in relay.decided(challenge)
    browser.press("Done")
    at("granted", latitude=-33.86, longitude=151.21, accuracy=50_001)
    assert told(approve(asks_place=True)) is None, "it is not known to within 50 km"
    at("denied")
    assert told(approve(asks_place=True)) is None
    account_settings(browser, "The Shop")
    browser.press("Do not send the place")
    browser.says("The place is not sent.")
    stage.looks.look(browser, "27-place-account")
    at("granted")
    assert told(approve(asks_place=True)) is None, "the person has changed the choice"


ALL = (owner_fails, owner_demanded, older_relay_without_check, passkey_lost, no_passkey, place)
