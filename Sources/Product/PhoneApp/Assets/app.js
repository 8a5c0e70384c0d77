// The app: its stored data, the requests it follows, and the visible screen.

import { CallFailure, RelayLine } from "./calls.js";
import { askOffset, isFarFrom } from "./clock.js";
import { systemName } from "./capabilities.js";
import { visible } from "./context.js";
import { Responder } from "./device.js";
import { Keyring } from "./keyring.js";
import { Letters } from "./letters.js";
import { readAccountLink } from "./own-account.js";
import { Pushes } from "./pushes.js";
import { Requests } from "./requests.js";
import { Shell } from "./shell.js";
import { receive } from "./receive.js";
import { language, languages, loadLanguage, t } from "./texts.js";
import { Updates } from "./updates.js";

const day = 86_400_000;

export class App {
  phones = [];
  codes = [];
  history = [];
  isRelayLost = false;
  #lines = new Map();
  #following = new Map();
  #others = null;

  constructor(environment) {
    this.environment = environment;
    this.requests = new Requests({
      responder: (phone) => this.responder(phone),
      troubled: (isLost, phone) => this.#troubled(isLost, phone),
      refused: (phone, error) => this.#refused(phone, error),
    });
    this.shell = new Shell(this);
    this.letters = new Letters(this);
    this.updates = new Updates(this);
    this.pushes = new Pushes(this);
  }

  get config() {
    return this.environment.config;
  }

  get bound() {
    return this.phones.filter(({ state, unboundBy }) => state === "bound" && !unboundBy);
  }

  async start(fragment = "") {
    this.keyring = await Keyring.open(this.environment.database);
    const tag = await this.keyring.setting("language");
    if (tag !== language() && languages.some(([one]) => one === tag)) await loadLanguage(tag);
    await this.read();
    this.#others = new BroadcastChannel(this.environment.database);
    this.#others.addEventListener("message", () => this.read());
    this.requests.addEventListener("change", () => this.#arrived());
    document.addEventListener("visibilitychange", () => this.follow());
    addEventListener("online", () => this.follow({ again: true }));
    this.shell.speak();
    this.shell.go("home", undefined, { takesFocus: false });
    await this.updates.start();
    this.pushes.listen();
    this.openFragment(fragment);
    this.follow();
    for (const phone of this.bound) this.greet(phone);
  }

  /** Opens what a fragment says: a request that was pushed, the own account, or an activation. */
  openFragment(fragment) {
    const opened = /^open=([\w-]{1,128})$/.exec(fragment);
    const account = readAccountLink(fragment);
    if (opened) this.openRequest(opened[1]);
    else if (account) this.shell.go("linked", account.link);
    else if (fragment !== "") receive(this, `${this.environment.origin}/phone/#${fragment}`);
  }

  // Requests

  /**
   * Follows the requests of every bound phone while the app is visible, and of none otherwise: a
   * hidden page is stopped at any moment.
   */
  follow({ again = false } = {}) {
    const isVisible = document.visibilityState === "visible";
    for (const [id, following] of this.#following) {
      if (isVisible && !again && this.bound.some((phone) => phone.id === id)) continue;
      following.abort();
      this.#following.delete(id);
    }
    if (!isVisible) return;
    for (const phone of this.bound.filter(({ id }) => !this.#following.has(id))) {
      const following = new AbortController();
      this.#following.set(phone.id, following);
      this.requests.follow(phone, following.signal).finally(() => {
        if (this.#following.get(phone.id) === following) this.#following.delete(phone.id);
      });
    }
  }

  /** Opens a request that a push has announced. Its content comes from the relay alone. */
  async openRequest(challenge) {
    if (challenge && !this.requests.find(challenge)) await this.requests.wake(this.bound);
    this.shell.go(challenge ? "question" : "home", challenge ?? undefined);
  }

  /** The connection to a relay. It has a DPoP nonce and a clock, so each phone has its own. */
  line(phone) {
    if (!this.#lines.has(phone.id)) {
      const now = () => Date.now() + (this.current(phone).offset ?? 0);
      this.#lines.set(phone.id, new RelayLine(phone, this.environment.carry(phone), {
        now, heard: () => this.letters.look(phone),
      }));
    }
    return this.#lines.get(phone.id);
  }

  responder(phone) {
    return new Responder(this.current(phone), this.line(phone));
  }

  /** The stored state of a phone: whoever holds an object of it may have an older one. */
  current(phone) {
    return this.phones.find(({ id }) => id === phone.id) ?? phone;
  }

  #known = new Set();

  #arrived() {
    const open = this.requests.open.filter(({ question }) => question);
    for (const { challenge, question } of open) {
      if (!this.#known.has(challenge)) this.shell.announce(t("arrived", { website: visible(question.context.displayName) }));
    }
    this.#known = new Set(open.map(({ challenge }) => challenge));
    this.shell.redraw();
  }

  #troubled(isLost, phone) {
    if (!isLost && phone && this.current(phone).isRefused) this.change(phone, { isRefused: false });
    if (this.isRelayLost === isLost) return;
    this.isRelayLost = isLost;
    this.shell.drawBanner();
  }

  /** Handles a 401: a wrong clock, a suspended phone, or an unbound one. True to ask again. */
  async #refused(given, error) {
    const phone = this.current(given);
    const now = Date.now() + (phone.offset ?? 0);
    try {
      if (isFarFrom(error.date, now)) {
        const offset = await this.askTime(phone);
        if (Math.abs(offset - (phone.offset ?? 0)) > 60_000) return true;
      }
      const told = await this.responder(phone).goodbye(false);
      if (!told.isBound) return this.refuse(phone, told.by);
    } catch {
      // The relay says no more: a suspended phone keeps its key.
    }
    return this.refuse(phone);
  }

  /** Asks the relay for its time, and corrects the clock for this relay only. */
  async askTime(phone) {
    const offset = await askOffset(phone, (path, options) => this.line(phone).send(path, { ...options, proved: false }));
    if (offset !== (phone.offset ?? 0)) await this.change(phone, { offset });
    return offset;
  }

  /** Marks a phone that the relay refuses. It may only be suspended, so its key stays. */
  async refuse(phone, unboundBy = null) {
    this.requests.closeAll(phone);
    await this.change(phone, { isRefused: true, unboundBy });
    return false;
  }

  /**
   * What a phone does after it was bound and at each start of the app, as far as the relay answers.
   */
  async greet(phone) {
    // A refusal or a lost answer is no trouble: the next start does the same again.
    const attempt = (work) => work().catch((error) => {
      if (!(error instanceof CallFailure)) console.warn(error);
    });
    const report = { app_version: this.config.version.slice(0, 32) };
    const os = systemName();
    if (os) report.os = os;
    await attempt(() => this.responder(phone).report(report));
    await attempt(() => this.pushes.renew(phone));
    await attempt(() => this.letters.look(phone));
    if (this.current(phone).codesAt !== undefined && Date.now() - (this.current(phone).askedTimeAt ?? 0) > day) {
      await attempt(async () => {
        await this.askTime(phone);
        await this.change(phone, { askedTimeAt: Date.now() });
      });
    }
  }

  // Stored data

  /** Reads the stored data. Other windows of this app are told about changes. */
  async read() {
    [this.phones, this.codes, this.history] = await Promise.all(["phones", "codes", "history"].map((store) => this.keyring.all(store)));
    this.history.sort((one, other) => other.at - one.at);
    this.shell.redraw();
  }

  async #changed() {
    this.#others.postMessage("changed");
    await this.read();
  }

  async save(phone) {
    await this.keyring.put("phones", phone);
    localStorage.setItem("had-accounts", "true");
    await this.#changed();
  }

  /** Changes members of a stored phone. */
  async change(phone, values) {
    await this.keyring.merge("phones", phone.id, values);
    await this.#changed();
  }

  async forget(phone) {
    await this.keyring.remove("phones", phone.id);
    for (const code of this.codes.filter(({ phone: id }) => id === phone.id)) await this.keyring.remove("codes", code.id);
    this.requests.closeAll(phone);
    this.#lines.delete(phone.id);
    await this.#changed();
    if (this.phones.length === 0) localStorage.removeItem("had-accounts");
    this.follow();
  }

  /** Stores the names of website and account from a request, for the list of accounts. */
  async remember(given, { displayName, username }) {
    const phone = this.current(given);
    if (phone.displayName === displayName && phone.username === username) return;
    await this.change(phone, { displayName, username });
  }

  async record(decision) {
    await this.keyring.record(decision);
    await this.#changed();
  }

  async saveCode(code) {
    await this.keyring.put("codes", code);
    await this.#changed();
  }

  async removeCode(code) {
    await this.keyring.remove("codes", code.id);
    await this.#changed();
  }

  async setLanguage(tag) {
    await this.keyring.set("language", tag);
    await loadLanguage(tag);
    this.shell.speak();
  }
}
