"""A headless Chromium, and windows in it that are used as a person uses them: by what is written there."""

import base64
import contextlib
import ctypes
import signal

from selenium import webdriver
from selenium.common.exceptions import ElementClickInterceptedException, TimeoutException, WebDriverException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

# Nothing takes so long; a machine may be slow.
PATIENCE = 120

# One question to a page for all its elements: each by itself would take its time.
LOOK = """
const all = (css) => [...document.querySelectorAll(css)].filter((one) => one.checkVisibility({ visibilityProperty: true }));
const nameOf = (one) => (one.labels?.[0]?.innerText ?? one.ariaLabel ?? one.innerText).trim();
"""
ALL = LOOK + "return all(arguments[0]);"
NAMED = LOOK + """
const [css, name] = arguments;
const fits = name.endsWith("…") ? (text) => text.startsWith(name.slice(0, -1)) : (text) => text === name;
return all(css).filter((one) => fits(nameOf(one)));
"""
# What somebody reads on the page, piece by piece; but for the relay's own words, why it has refused something.
WORDS = LOOK + """
return all("a, button, label, option, h1, h2, h3, dt, p, strong, .badge, .lanes span, .explanation, .note")
  .filter((one) => !one.closest(".is-bad")).map((one) => one.innerText.trim()).filter((text) => text !== "");
"""
# What has the focus, and whether that is seen.
FOCUS = LOOK + """
const one = document.activeElement, style = getComputedStyle(one);
const isSeen = one.matches(":focus-visible") && style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
return [nameOf(one), isSeen];
"""


class Browser:
    def __init__(self, chromium, driver, profile):
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        arguments = [
            "--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--lang=en", "--hide-scrollbars",
            "--no-first-run", "--disable-component-update", "--disable-background-networking", "--disable-sync",
            "--force-device-scale-factor=1", "--remote-debugging-pipe", f"--user-data-dir={profile}",
            # Root has none, containers have none, and the pages are our own.
            "--no-sandbox",
            # Windows that are behind others wait as well as the one in front.
            "--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows",
            "--disable-renderer-backgrounding",
        ]
        for argument in arguments:
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        # With the driver's path nothing is looked for, and nothing fetched. Whoever kills us ends the driver too, and the
        # browser, which hears of it by its pipe.
        service = Service(driver, popen_kw={"preexec_fn": lambda: ctypes.CDLL(None).prctl(1, signal.SIGKILL)})
        self.driver = webdriver.Chrome(options=options, service=service)
        self.driver.set_script_timeout(PATIENCE)
        # The window, or the frame in one, that the driver looks at.
        self.front = None

    def window(self, width, height):
        self.driver.switch_to.new_window("window")
        self.driver.set_window_size(width, height)
        return Window(self, self.driver.current_window_handle)

    def complaints(self):
        """What the console has said since it was asked for last, as (source, text): scripts and policies, and what was not loaded."""
        return [
            (entry["source"], entry["message"]) for entry in self.driver.get_log("browser")
            if entry["level"] not in ("INFO", "DEBUG")
        ]

    def quit(self):
        self.driver.quit()


class Window:
    def __init__(self, browser, handle):
        self.browser = browser
        self.driver = browser.driver
        self.handle = handle
        # What to do where something lies on top of what is to be pressed.
        self.clear = lambda: None

    def front(self):
        if self.browser.front is not self:
            self.driver.switch_to.window(self.handle)
            self.browser.front = self

    def open(self, address):
        self.front()
        self.driver.get(address)

    def reload(self):
        self.front()
        self.driver.refresh()

    def until(self, look, what):
        """Waits until `look` finds something. What is drawn anew meanwhile is looked at again."""
        def looked(_):
            try:
                self.front()
                return look()
            except (WebDriverException, IndexError):
                # There is none yet, or not that one any more; a frame that loads another page is another one.
                self.browser.front = None
                return None

        try:
            return WebDriverWait(self.driver, PATIENCE, poll_frequency=0.1).until(looked)
        except TimeoutException:
            raise AssertionError(f"not seen: {what}\n{self.driver.current_url}\n{self.text()}") from None

    def all(self, css):
        return self.driver.execute_script(ALL, css)

    def text(self):
        return self.driver.find_element(By.TAG_NAME, "body").text

    def words(self):
        self.front()
        return set(self.driver.execute_script(WORDS))

    def language(self):
        self.front()
        return self.driver.find_element(By.TAG_NAME, "html").get_attribute("lang")

    def places(self, *selectors):
        """Where these are in the window."""
        self.front()
        return [
            self.driver.execute_script("return arguments[0].getBoundingClientRect().toJSON()", self.all(css)[0])
            for css in selectors
        ]

    def heading(self, *titles):
        """The first of these that the page has come to."""
        def look():
            shown = self.driver.find_element(By.TAG_NAME, "h1").text
            return shown if shown in titles else None
        return self.until(look, " or ".join(titles))

    def says(self, words):
        self.until(lambda: words in self.text(), words)

    def named(self, name, css="button, a, summary"):
        """What can be pressed and has that name, or one that begins so where it ends with …"""
        return self.driver.execute_script(NAMED, css, name)

    def press(self, name, css="button, a, summary"):
        def look():
            found = [one for one in self.named(name, css) if one.is_enabled()]
            if not found:
                return None
            try:
                found[0].click()
            except ElementClickInterceptedException:
                self.clear()
                return None
            return True
        self.until(look, f"{name}, to be pressed")

    def labelled(self, label):
        """The input with that label, if it is there."""
        return next(iter(self.named(label, "input, select")), None)

    def fill(self, label, text):
        def look():
            field = self.labelled(label)
            if field is None:
                return None
            field.clear()
            field.send_keys(text)
            return True
        self.until(look, f"the field {label}")

    def choose(self, label, option):
        self.until(lambda: self.labelled(label), f"the choice {label}")
        Select(self.labelled(label)).select_by_visible_text(option)

    def keys(self, *keys):
        """Without a mouse: to whatever has the focus."""
        self.front()
        ActionChains(self.driver).send_keys(*keys).perform()

    def tab_to(self, name):
        """From where the focus is, on until it has come there."""
        for _ in range(60):
            self.keys(Keys.TAB)
            shown, is_seen = self.driver.execute_script(FOCUS)
            if shown == name:
                assert is_seen, f"{name} has the focus, and nobody sees it"
                return
        raise AssertionError(f"the keyboard does not get to {name}\n{self.text()}")

    def press_by_keyboard(self, name, key=Keys.ENTER):
        self.tab_to(name)
        self.keys(key)

    def fill_by_keyboard(self, label, text):
        self.tab_to(label)
        self.keys(text)

    def scheme(self, name):
        features = [{"name": "prefers-color-scheme", "value": name}, {"name": "prefers-reduced-motion", "value": "reduce"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def picture(self, path, scale):
        width, height = self.driver.execute_script("return [innerWidth, innerHeight]")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": scale}
        taken = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "clip": clip, "optimizeForSpeed": False})
        with open(path, "wb") as file:
            file.write(base64.b64decode(taken["data"]))

    @contextlib.contextmanager
    def as_wide_as(self, width, height):
        """A window of the desktop cannot be as narrow as a phone; what a page is told can."""
        self.front()
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.until(lambda: self.driver.execute_script("return [innerWidth, innerHeight]") == [width, height], "that size")
        yield
        self.front()
        self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    def ask(self, script, *arguments):
        """Runs a script that calls `done`."""
        self.front()
        return self.driver.execute_async_script(f"const done = arguments[arguments.length - 1];{script}", *arguments)


class Frame(Window):
    """A frame in a window's page, used as a window is."""

    def __init__(self, window, css):
        super().__init__(window.browser, window.handle)
        self.css = css

    def front(self):
        if self.browser.front is not self:
            self.driver.switch_to.window(self.handle)
            self.driver.switch_to.frame(self.driver.find_element(By.CSS_SELECTOR, self.css))
            self.browser.front = self
