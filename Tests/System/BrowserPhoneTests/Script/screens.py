"""The screens of the app in a browser, used by what is written on them."""

from selenium.common.exceptions import TimeoutException, WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

# Nothing takes so long; a machine may be slow.
PATIENCE = 180

NAMED = """
const [css, name] = arguments;
const nameOf = (one) => (one.labels?.[0]?.innerText ?? one.ariaLabel ?? one.innerText).trim();
const fits = name.endsWith("…") ? (text) => text.startsWith(name.slice(0, -1)) : (text) => text === name;
return [...document.querySelectorAll(css)].filter((one) => one.checkVisibility({ visibilityProperty: true }) && fits(nameOf(one)));
"""

# What does not fit into the width of the screen, or cannot be pressed there.
UNFIT = """
const faults = [], name = (one) => one.outerHTML.slice(0, 120);
const screen = document.getElementById("screen"), at = screen.scrollTop;
if (document.scrollingElement.scrollWidth > innerWidth) faults.push(`the page is ${document.scrollingElement.scrollWidth} wide`);
if (screen.scrollWidth > screen.clientWidth) faults.push(`the screen is ${screen.scrollWidth} wide`);
const front = document.querySelector("dialog[open]") ?? document;
for (const one of front.querySelectorAll("a, button, input, select, textarea, summary")) {
  if (!one.checkVisibility() || one.matches(".skip")) continue;
  one.scrollIntoView({ block: "center", behavior: "instant" });
  const box = one.getBoundingClientRect();
  if (box.left < 0 || box.right > innerWidth) faults.push(`outside: ${name(one)}`);
  const hit = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
  if (!one.contains(hit)) faults.push(`covered: ${name(one)}`);
  if (box.height < 24 && !one.matches("[type=checkbox]")) faults.push(`too small: ${name(one)}`);
}
screen.scrollTop = at;
return faults;
"""


class Screens:
    """The app in a browser. A subclass starts one as `driver`, and tells the `complaints` of its console."""

    def open(self, address):
        self.driver.get("about:blank")
        self.driver.get(address)
        self.ready()

    def reload(self):
        self.driver.refresh()
        self.ready()

    def ready(self):
        self.until(lambda: self.script("return document.documentElement.dataset.ready === 'true'"), "the app has started")

    def script(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def ask(self, text, *arguments):
        return self.driver.execute_async_script(f"const done = arguments[arguments.length - 1];{text}", *arguments)

    def until(self, look, what):
        def looked(_):
            try:
                return look()
            except (WebDriverException, IndexError):
                return None
        try:
            return WebDriverWait(self.driver, PATIENCE, poll_frequency=0.05).until(looked)
        except TimeoutException:
            raise AssertionError(f"not seen: {what}\n{self.driver.current_url}\n{self.text()}\n{self.complaints()}") from None

    def text(self):
        return self.driver.find_element(By.TAG_NAME, "body").text

    def says(self, words):
        self.until(lambda: words in self.text(), words)

    def heading(self, words):
        self.until(lambda: self.script("return document.querySelector('h1')?.innerText") == words, f"the heading {words}")

    def named(self, name, css="button, a, summary"):
        return self.script(NAMED, css, name)

    def press(self, name, css="button, a, summary"):
        def look():
            one = next(one for one in self.named(name, css) if one.is_enabled())
            self.script("arguments[0].scrollIntoView({ block: 'center', behavior: 'instant' })", one)
            one.click()
            return True
        self.until(lambda: self.named(name, css) and look(), f"{name}, to be pressed")

    def tab(self, name):
        self.until(lambda: self.driver.find_element(By.CSS_SELECTOR, f"[data-tab={name}]").click() or True, f"the tab {name}")

    def fill(self, label, text):
        def look():
            field = self.named(label, "input, select, textarea")[0]
            field.clear()
            field.send_keys(text)
            return True
        self.until(look, f"the field {label}")

    def element(self, css):
        return self.until(lambda: self.driver.find_element(By.CSS_SELECTOR, css), css)
