"""A headless Chromium with the app in it, used by what is written on its screens."""

import base64
import json
import os

from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.service import Service

from screens import PATIENCE, UNFIT, Screens

# A service for pushes, which a headless browser has not: the subscription is made up, what it is for is not.
STUB = """
let made = null;
const make = (options) => ({
  endpoint: "https://push.example.net/send/abc", expirationTime: null, options,
  toJSON: () => ({ endpoint: "https://push.example.net/send/abc", expirationTime: null, keys: { p256dh: "BA", auth: "AA" } }),
  unsubscribe: async () => { made = null; return true; },
});
PushManager.prototype.subscribe = async (options) => (made = make({ applicationServerKey: new Uint8Array(options.applicationServerKey).buffer }));
PushManager.prototype.getSubscription = async () => made;
"""


class Browser(Screens):
    def __init__(self, chromium, driver, profile, pin, more=()):
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        for argument in (
            "--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--lang=en", "--hide-scrollbars", "--no-first-run",
            "--disable-component-update", "--disable-background-networking", "--disable-sync", "--force-device-scale-factor=1",
            "--remote-debugging-pipe", f"--user-data-dir={profile}", "--no-sandbox", "--disable-background-timer-throttling",
            "--disable-backgrounding-occluded-windows", "--disable-renderer-backgrounding", "--use-fake-ui-for-media-stream",
            # The authority of the tests is trusted by this flag, and nothing else.
            f"--ignore-certificate-errors-spki-list={pin}", *more,
        ):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(driver))
        self.driver.set_script_timeout(PATIENCE)
        self.cdp = self.driver.execute_cdp_cmd
        self.size(390, 844)

    def quit(self):
        self.driver.quit()

    def size(self, width, height):
        self.cdp("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def scheme(self, name):
        features = [{"name": "prefers-color-scheme", "value": name}, {"name": "prefers-reduced-motion", "value": "reduce"}]
        self.cdp("Emulation.setEmulatedMedia", {"features": features})

    def authenticator(self, verifies=True):
        """A platform authenticator, which verifies its owner or fails to."""
        self.cdp("WebAuthn.enable", {})
        options = {
            "protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True,
            "isUserVerified": verifies, "automaticPresenceSimulation": True,
        }
        return self.cdp("WebAuthn.addVirtualAuthenticator", {"options": options})["authenticatorId"]

    def verifies(self, authenticator, does):
        self.cdp("WebAuthn.setUserVerified", {"authenticatorId": authenticator, "isUserVerified": does})

    def stub_pushes(self, origin):
        self.cdp("Page.addScriptToEvaluateOnNewDocument", {"source": STUB})
        self.cdp("Browser.grantPermissions", {"origin": origin, "permissions": ["notifications"]})

    def push(self, origin, payload):
        """Delivers a push to the service worker, as the browser's push service would after it has decrypted it."""
        found = []
        self.cdp("ServiceWorker.enable", {})
        # The events of this domain do not reach the driver, so the registration is asked for by its number.
        for number in range(12):
            try:
                self.cdp("ServiceWorker.deliverPushMessage", {"origin": origin, "registrationId": str(number), "data": json.dumps(payload)})
                found.append(number)
            except WebDriverException:
                continue
        assert found, "no registration took the push"

    def notified(self, origin, payload):
        """The notifications of a push, which is delivered until there are some: the driver does not learn of one that is lost."""
        def look():
            self.push(origin, payload)
            return self.ask("""
                (async () => {
                  const registration = await navigator.serviceWorker.ready;
                  for (let look = 0; look < 40; look += 1) {
                    const all = await registration.getNotifications({ tag: arguments[0] });
                    if (all.length > 0) return all.map(({ title, body, actions }) => [title, body, actions?.map((one) => one.action)]);
                    await new Promise((resolve) => setTimeout(resolve, 50));
                  }
                  return null;
                })().then(done);
            """, payload["challenge"])
        return self.until(look, "the notification")

    def complaints(self):
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] not in ("INFO", "DEBUG")]

    def picture(self, path):
        """Writes a PNG, or a small WebP by the name of the file."""
        options = {"format": "webp", "quality": 85} if path.endswith(".webp") else {"format": "png"}
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.cdp("Page.captureScreenshot", options)["data"]))


class Looks:
    """Looks at each screen once: pictures, axe-core in light and dark, and whether everything fits at 320 pixels."""

    def __init__(self, pictures, axe, shown):
        """`shown` has the files of single screens, in light and at the size of a phone."""
        self.pictures, self.shown = pictures, shown
        self.axe = open(axe, encoding="utf-8").read()
        self.faults = []
        self.seen = set()

    def look(self, browser, name):
        if name in self.seen:
            return
        self.seen.add(name)
        for scheme in ("light", "dark"):
            browser.scheme(scheme)
            # The policy of the page forbids scripts from elsewhere, but not those of the driver.
            browser.script(self.axe)
            found = browser.ask("axe.run({ resultTypes: ['violations'] }).then((one) => done(one.violations), (error) => done([{ id: String(error), nodes: [] }]));")
            for one in found:
                nodes = "; ".join(node["html"][:160] for node in one["nodes"])
                self.faults.append(f"{name}, {scheme}: {one['id']} ({one.get('impact')}): {nodes}")
            if self.pictures:
                browser.picture(os.path.join(self.pictures, f"{name}-{scheme}.png"))
            if scheme == "light" and name in self.shown:
                browser.picture(self.shown[name])
        browser.scheme("light")
        for width, height in ((320, 568), (1024, 1366)):
            browser.size(width, height)
            self.faults += [f"{name}, {width} wide: {fault}" for fault in browser.script(UNFIT)]
            if self.pictures:
                browser.picture(os.path.join(self.pictures, f"{name}-{width}.png"))
        browser.size(390, 844)
        self.faults += [f"{name}, 390 wide: {fault}" for fault in browser.script(UNFIT)]
