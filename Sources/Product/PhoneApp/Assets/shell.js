// The frame around the screens: the tabs, the banner, and the way from one screen to another.

import { fill, h, button, icon } from "./elements.js";
import { account } from "./screen-account.js";
import { add } from "./screen-add.js";
import { codes } from "./screen-codes.js";
import { decisions } from "./screen-decisions.js";
import { enrol } from "./screen-enrol.js";
import { home } from "./screen-home.js";
import { install } from "./screen-install.js";
import { linked } from "./screen-linked.js";
import { notices } from "./screen-notices.js";
import { own } from "./screen-own.js";
import { pin } from "./screen-pin.js";
import { question } from "./screen-question.js";
import { refused } from "./screen-refused.js";
import { settings } from "./screen-settings.js";
import { version } from "./screen-version.js";
import { language, t } from "./texts.js";

const screens = {
  account, add, codes, decisions, enrol, home, install, linked, notices, own, pin, question, refused, settings, version,
};
/** The tabs, and the tab to which each other screen belongs. */
const tabs = { home: "home", codes: "codes", notices: "messages", settings: "settings" };
const parents = { account: "settings", decisions: "settings", own: "settings", pin: "settings", version: "settings" };

const part = (id) => document.getElementById(id);

export class Shell {
  #front = null;

  constructor(app) {
    this.app = app;
    addEventListener("popstate", () => {
      if (this.#front && !(this.#front.name in tabs)) this.#show(parents[this.#front.name] ?? "home");
    });
    document.addEventListener("click", (event) => {
      // The fragment is for links of activations only.
      if (event.target.closest?.("#skip")) {
        event.preventDefault();
        part("screen").focus();
      }
    });
  }

  get front() {
    return this.#front?.name ?? null;
  }

  /** Shows a screen. The button “back” of a phone leads from it to its tab. */
  go(name, argument, { takesFocus = true } = {}) {
    const isInner = !(name in tabs);
    if (isInner && !history.state?.inner) history.pushState({ inner: true }, "");
    this.#show(name, argument, takesFocus);
  }

  #show(name, argument, takesFocus = true) {
    this.#front?.leave?.();
    const made = screens[name](this.app, argument);
    this.#front = { name, argument, ...made };
    document.documentElement.dataset.screen = name;
    part("screen").replaceChildren(made.node);
    part("screen").scrollTop = 0;
    this.#drawTabs();
    this.drawBanner();
    if (takesFocus) (part("screen").querySelector("h1") ?? part("screen")).focus();
  }

  /** Writes everything in the language that was chosen. */
  speak() {
    document.documentElement.lang = language();
    part("skip").textContent = t("skip");
    part("tabs").setAttribute("aria-label", t("tabs"));
    part("tabs").replaceChildren();
    if (this.#front) this.#show(this.#front.name, this.#front.argument);
  }

  redraw() {
    this.#front?.draw?.();
    this.#drawTabs();
    this.drawBanner();
  }

  /** Says something to screen readers that others see on the screen. */
  announce(words) {
    part("announcer").textContent = words;
  }

  drawBanner() {
    const { app } = this;
    const isBusy = ["question", "enrol", "version", "pin"].includes(this.front);
    const update = app.updates.isReady && !isBusy;
    const words = !navigator.onLine ? t("offline") : app.isRelayLost ? t("relayLost") : update ? t("updateReady") : "";
    const key = `${words} ${update}`;
    if (part("banner").dataset.key === key) return;
    part("banner").dataset.key = key;
    fill(
      part("banner"), words ? h("span", {}, words) : null,
      update ? button(t("look"), () => this.go("version"), "quiet") : null);
  }

  /**
   * Updates the tabs. The buttons are made only once, because a new button would lose the focus.
   */
  #drawTabs() {
    const bar = part("tabs");
    if (bar.children.length === 0) {
      bar.append(...Object.entries(tabs).map(([name, drawing]) => h(
        "button", { type: "button", "data-tab": name, on: { click: () => this.#leaveTo(name) } },
        icon(drawing), h("span", {}))));
    }
    const counts = {
      home: this.app.requests.open.filter((entry) => entry.question).length,
      notices: this.app.letters.count,
    };
    for (const tab of bar.children) {
      const { tab: name } = tab.dataset;
      const words = counts[name] ? t("counted", { name: t(name), count: counts[name] }) : t(name);
      const label = tab.querySelector("span");
      if (label.textContent !== words) label.textContent = words;
      tab.classList.toggle("counted", Boolean(counts[name]));
      if ((this.#front?.name in tabs ? this.#front.name : parents[this.#front?.name] ?? "home") === name) tab.setAttribute("aria-current", "page");
      else tab.removeAttribute("aria-current");
    }
  }

  #leaveTo(name) {
    if (history.state?.inner) history.replaceState(null, "");
    this.go(name);
  }
}
