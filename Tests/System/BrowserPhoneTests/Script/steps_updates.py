"""The steps around versions: offline, an update that the person accepts, files that are not as they should be, lost storage."""

from selenium.webdriver.common.by import By

from steps import bind, open_request, whole


def bound(stage, name, username):
    browser, relay = stage.browser(name), stage.near.relay
    browser.authenticator()
    bind(stage, browser, relay, relay.activate(username), checks_owner=False)
    browser.press("I have written it down")
    if browser.named("Not now"):
        stage.looks.look(browser, "30-notifications")
        browser.press("Not now")
    browser.heading("Requests")
    return browser


def installable(stage):
    """the manifest has what a browser wants before it installs an app"""
    import json
    manifest = json.loads(stage.app.file("manifest.webmanifest"))
    assert manifest["display"] == "standalone" and manifest["start_url"].startswith(manifest["scope"]) and manifest["name"]
    for one in manifest["icons"]:
        content = stage.app.file(one["src"].removeprefix("/phone/"))
        if one["type"] == "image/png":
            size = int.from_bytes(content[16:20], "big"), int.from_bytes(content[20:24], "big")
            assert one["sizes"] == f"{size[0]}x{size[1]}", one
    assert {"192x192", "512x512"} <= {one["sizes"] for one in manifest["icons"]}
    browser = stage.browser("five")
    browser.open(f"{stage.near.origin}/phone/")
    errors = browser.cdp("Page.getInstallabilityErrors", {})["installabilityErrors"]
    assert not [one for one in errors if one["errorId"] != "in-incognito"], errors


def offline(stage):
    """the app starts without a network, and says that it is offline"""
    browser = bound(stage, "five", "frank")
    controlled(browser)
    browser.cdp("Network.enable", {})
    browser.cdp("Network.emulateNetworkConditions", {"offline": True, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1})
    browser.reload()
    browser.heading("Requests")
    browser.says("This device is offline.")
    stage.looks.look(browser, "31-offline")
    browser.cdp("Network.emulateNetworkConditions", {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1})
    browser.reload()
    browser.until(lambda: "offline" not in browser.text(), "the network")


def controlled(browser):
    browser.until(lambda: browser.script("return navigator.serviceWorker.controller !== null"), "the service worker")


def incomplete(stage):
    """an app whose first version cannot be kept works without it"""
    config = stage.app.config
    stage.app.config = lambda: {**config(), "files": {**config()["files"], "/phone/nothing.js": "A" * 43}}
    browser = bound(stage, "nine", "ida")
    browser.until(
        lambda: browser.ask("navigator.serviceWorker.getRegistration('/phone/').then((one) => done(!one || !one.active));"),
        "the end of the worker")
    stage.app.config = config
    stage.close("nine")


def renamed(stage):
    """a release that changes no file is not offered"""
    browser = stage.browser("five")
    controlled(browser)
    stage.app.version = "1.0.1"
    told = browser.ask(
        "const { port1, port2 } = new MessageChannel(); port1.onmessage = ({ data }) => done(data);"
        "navigator.serviceWorker.controller.postMessage({ kind: 'update' }, [port2]);")
    assert told["config"]["version"] == "1.0.1" and told["old"]["version"] == "1.0.0" and told["isNew"] is False, told


def update(stage):
    """a new version is kept out until the person accepts it, and an open request is not lost"""
    browser, relay = stage.browser("five"), stage.near.relay
    controlled(browser)
    stage.app.version = "1.1.0"
    stage.app.changes["texts.en.json"] = stage.app.file("texts.en.json").replace(b'"Check for requests"', b'"Look for requests"')
    challenge = relay.ask("frank")
    browser.reload()
    browser.says("A new version of this app is ready.")
    browser.says("Check for requests")
    stage.looks.look(browser, "32-update-ready")
    open_request(browser, challenge)
    browser.heading("Is this you?")
    assert "A new version" not in browser.text()
    browser.driver.back()
    browser.heading("Requests")
    browser.press("Show", "#banner button")
    browser.heading("New version")
    browser.says("texts.en.json")
    stage.looks.look(browser, "33-update")
    old, new = [browser.until(lambda: one.text, "a fingerprint") for one in browser.driver.find_elements(By.CSS_SELECTOR, ".code")]
    assert old != new and len(new) == 39, (old, new)
    browser.press("Use version 1.1.0")
    browser.until(lambda: "Look for requests" in browser.text(), "the new version")
    open_request(browser, challenge)
    whole(browser)
    browser.fill("Number on the website", "47")
    browser.press("Approve")
    browser.heading("Approved")
    browser.press("Done")


def tampered(stage):
    """a file that is not the one of the version is not taken, and the old version stays"""
    browser = stage.browser("five")
    config, version = stage.app.config, "1.2.0"
    stage.app.config = lambda: {**config(), "version": version, "files": {**config()["files"], "/phone/app.js": "A" * 43}}
    browser.reload()
    browser.says("A new version of this app is ready.")
    browser.press("Show", "#banner button")
    browser.press("Use version 1.2.0")
    browser.says("The new version was not taken, and the present one stays")
    stage.app.config = config
    browser.reload()
    browser.says("Look for requests")


def hostile_server(stage):
    """files that the server changes silently do not reach a phone that has accepted others"""
    browser = stage.browser("five")
    stage.app.changes["app.js"] = b"document.body.textContent = 'hostile';"
    browser.reload()
    browser.says("Look for requests")
    assert "hostile" not in browser.text()
    del stage.app.changes["app.js"]
    browser.reload()


def other_worker(stage):
    """another service worker serves the accepted version, too, until the person accepts another one"""
    browser = stage.browser("five")
    before = stage.app.file("worker.js")
    stage.app.changes["worker.js"] = before + b"\n// Another one.\n"
    stage.app.changes["app.js"] = stage.app.file("app.js") + b"\n"
    browser.ask("navigator.serviceWorker.ready.then((one) => one.update()).then(() => done(), () => done());")
    browser.until(lambda: browser.ask("navigator.serviceWorker.ready.then((one) => done(Boolean(one.waiting)));"), "the waiting worker")
    browser.cdp("ServiceWorker.enable", {})

    def skips_waiting():
        # The browser ignores the wish while the old worker has something to do.
        browser.cdp("ServiceWorker.skipWaiting", {"scopeURL": f"{stage.near.origin}/phone/"})
        return browser.ask("navigator.serviceWorker.ready.then((one) => done(one.waiting === null));")
    browser.until(skips_waiting, "the other worker")
    browser.reload()
    browser.says("A new version of this app is ready.")
    served = browser.ask("fetch('/phone/app.js').then((one) => one.text()).then(done);")
    assert not served.endswith("\n\n"), "the other worker has changed the version"
    del stage.app.changes["worker.js"], stage.app.changes["app.js"]


def cleared(stage):
    """if the browser has deleted the keys, the app says what to do"""
    browser = stage.browser("five")
    browser.ask("""
        for (const one of await indexedDB.databases()) indexedDB.deleteDatabase(one.name);
        setTimeout(done, 500);
    """.replace("for (", "(async () => { for (", 1).replace("setTimeout(done, 500);", "setTimeout(done, 500); })();"))
    browser.reload()
    browser.says("The browser has deleted the keys of this app")
    stage.looks.look(browser, "34-cleared")


def denied(stage):
    """an app whose notifications are blocked says so, and works"""
    browser = stage.browser("six")
    browser.cdp("Browser.setPermission", {"origin": stage.near.origin, "permission": {"name": "notifications"}, "setting": "denied"})
    bound(stage, "six", "gina")
    browser.tab("settings")
    browser.says("The browser blocks notifications of this app.")
    stage.looks.look(browser, "35-denied")
    challenge = stage.near.relay.ask("gina")
    browser.tab("home")
    open_request(browser, challenge)
    browser.heading("Is this you?")
    stage.close("six")


def too_old(stage):
    """a browser without service workers, storage or keys gets clear words and no app"""
    browser = stage.browser("seven")
    for script, words in (
        ("Object.defineProperty(Navigator.prototype, 'serviceWorker', { value: undefined });", "too old for this app"),
        ("Object.defineProperty(window, 'indexedDB', { value: undefined });", "does not let the app store its keys"),
        ("Object.defineProperty(Crypto.prototype, 'subtle', { value: undefined });", "cannot make the keys"),
    ):
        made = browser.cdp("Page.addScriptToEvaluateOnNewDocument", {"source": script})
        browser.driver.get(f"{stage.near.origin}/phone/")
        browser.says(words)
        browser.cdp("Page.removeScriptToEvaluateOnNewDocument", {"identifier": made["identifier"]})
    stage.looks.look(browser, "36-too-old")
    stage.close("seven")


def ios(stage):
    """a tab on iOS binds nothing: the app must be installed first"""
    browser = stage.browser("eight")
    agent = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1"
    browser.cdp("Network.setUserAgentOverride", {"userAgent": agent, "platform": "iPhone"})
    from steps import link
    values = stage.near.relay.activate("hans")
    browser.open(link(stage.near, values))
    browser.heading("Install the app first")
    stage.looks.look(browser, "37-install")
    assert stage.near.relay.activations[values["code"]]["device"] is None
    stage.close("eight")


ALL = (installable, offline, incomplete, renamed, update, tampered, hostile_server, other_worker, cleared, denied, too_old, ios)
