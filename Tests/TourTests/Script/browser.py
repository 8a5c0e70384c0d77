"""A headless Chromium, and windows in it that are used as a person uses them: by what is written there."""

import base64
import ctypes
import re
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

# What an answer looks like that a page has asked for and can do with: the first proof has no nonce yet.
USUAL = [r"/relay/\w+ - .*status of 401"]


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
        self.allowed = []

    def window(self, width, height):
        self.driver.switch_to.new_window("window")
        self.driver.set_window_size(width, height)
        return Window(self, self.driver.current_window_handle)

    def check_console(self):
        """Nothing was refused by a policy, no script failed, and what could not be loaded was to fail."""
        faults = []
        for entry in self.driver.get_log("browser"):
            text = entry["message"]
            expected = entry["source"] == "network" and any(re.search(one, text) for one in USUAL + self.allowed)
            if not expected and entry["level"] not in ("INFO", "DEBUG"):
                faults.append(f"{entry['source']}: {text}")
        assert not faults, "\n".join(faults)

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
        if self.driver.current_window_handle != self.handle:
            self.driver.switch_to.window(self.handle)

    def open(self, address):
        self.front()
        self.driver.get(address)

    def until(self, look, what):
        """Waits until `look` finds something. What is drawn anew meanwhile is looked at again."""
        self.front()

        def looked(_):
            try:
                return look()
            except WebDriverException:
                return None

        try:
            return WebDriverWait(self.driver, PATIENCE, poll_frequency=0.1).until(looked)
        except TimeoutException:
            raise AssertionError(f"not seen: {what}\n{self.driver.current_url}\n{self.text()}") from None

    def all(self, css):
        return [one for one in self.driver.find_elements(By.CSS_SELECTOR, css) if one.is_displayed()]

    def text(self):
        return self.driver.find_element(By.TAG_NAME, "body").text

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
        def fits(one):
            shown = (one.get_attribute("aria-label") or one.text).strip()
            return shown.startswith(name[:-1]) if name.endswith("…") else shown == name
        return [one for one in self.all(css) if fits(one)]

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
        for one in self.all("label"):
            if one.text.strip() == label:
                return self.driver.find_element(By.ID, one.get_attribute("for"))
        return None

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

    def press_by_keyboard(self, name):
        """Without a mouse: from where the focus is, on until it has come there."""
        self.front()
        for _ in range(60):
            ActionChains(self.driver).send_keys(Keys.TAB).perform()
            focus = self.driver.switch_to.active_element
            if focus.text.strip() == name:
                outline = focus.value_of_css_property("outline-style")
                assert outline != "none", f"{name} has the focus, and nobody sees it"
                ActionChains(self.driver).send_keys(Keys.ENTER).perform()
                return
        raise AssertionError(f"the keyboard does not get to {name}\n{self.text()}")

    def scheme(self, name):
        features = [{"name": "prefers-color-scheme", "value": name}, {"name": "prefers-reduced-motion", "value": "reduce"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def picture(self, path, scale):
        width, height = self.driver.execute_script("return [innerWidth, innerHeight]")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": scale}
        taken = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "clip": clip, "optimizeForSpeed": False})
        with open(path, "wb") as file:
            file.write(base64.b64decode(taken["data"]))

    def ask(self, script, *arguments):
        """Runs a script that calls `done`."""
        self.front()
        return self.driver.execute_async_script(f"const done = arguments[arguments.length - 1];{script}", *arguments)
