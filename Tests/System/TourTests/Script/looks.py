"""What each page is looked at for, besides what a step wants of it: pictures, assistive technology, and the width of a phone."""

import os

# Axe's frames talk to each other where they are told to: website and phone have other origins than the dashboard.
AXE_IN_FRAMES = "axe.configure({allowedOrigins: ['<unsafe_all_origins>']});"

# What does not fit into the page's width, and what cannot be pressed since it is outside of it or something covers it. A
# notification may: somebody wipes it away.
UNFIT = """
const faults = [], name = (one) => one.outerHTML.slice(0, 120);
const page = document.scrollingElement;
if (page.scrollWidth > innerWidth) faults.push(`the page is ${page.scrollWidth} wide`);
for (const one of document.querySelectorAll("body *")) {
  if (["auto", "scroll"].includes(getComputedStyle(one).overflowX) && one.scrollWidth > one.clientWidth) {
    faults.push(`${one.scrollWidth} wide: ${name(one)}`);
  }
}
const front = document.querySelector("dialog[open]") ?? document;
for (const one of front.querySelectorAll("a, button, input:not([type=hidden]), select, summary")) {
  if (!one.checkVisibility() || one.matches(".skip")) continue;
  one.scrollIntoView({ block: "center", behavior: "instant" });
  const box = one.getClientRects()[0];
  const hit = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
  if (box.left < 0 || box.right > innerWidth || !(one.contains(hit) || hit?.closest("#notifications"))) {
    faults.push(`cannot be pressed: ${name(one)}, there is ${hit && name(hit)}`);
  }
}
page.scrollTo(0, 0);
return faults;
"""


class Looks:
    def __init__(self, pictures, axe):
        """`axe` is where axe-core is, or nothing: then pictures are all."""
        self.pictures = pictures
        self.axe = open(axe, encoding="utf-8").read() if axe else None
        self.checked = set()
        self.faults = []

    def shot(self, name, who, scale=0.8):
        """A picture of the step; and the page is looked at, once for each."""
        window = who.window
        window.front()
        window.scheme("light")
        window.picture(os.path.join(self.pictures, f"{name}.png"), scale)
        self.check(name, window)

    def check(self, name, window, frames=()):
        """With the frames in it where they are named."""
        window.front()
        title = window.driver.execute_script(
            "return [document.title, location.pathname, document.documentElement.lang, document.querySelector('h1')?.textContent].join()")
        if self.axe is None or (title in self.checked and not frames):
            return
        self.checked.add(title)
        for one in (*frames, window):
            one.front()
            one.driver.execute_script(self.axe + AXE_IN_FRAMES)
        for scheme in ("light", "dark"):
            window.scheme(scheme)
            # Each frame is a page with a landmark of every kind.
            options = {
                "resultTypes": ["violations"], "iframes": bool(frames),
                "rules": {"landmark-unique": {"enabled": not frames}},
            }
            found = window.ask("axe.run(arguments[0]).then((one) => done(one.violations));", options)
            self.faults += [
                f"{name}, {scheme}: {one['id']} ({one['impact']}): {node['html'][:200]} {node.get('failureSummary', '')}"
                for one in found for node in one["nodes"]
            ]
        window.scheme("light")
        self.check_width(name, window, frames)

    def check_width(self, name, window, frames=()):
        with window.as_wide_as(390, 844):
            for one in (window, *frames):
                one.front()
                self.faults += [f"{name}, as wide as a phone: {fault}" for fault in one.driver.execute_script(UNFIT)]
