/**
 * A real browser: Debian's Chromium, driven over a pipe by its DevTools protocol. Answers and
 * events are JSON texts that end with a zero byte.
 */

import { spawn, spawnSync } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const PROGRAM = process.env.TWOEFAY_CHROMIUM ?? "chromium";

/** For `skip` of a test: false, or what is missing. */
export const lacksChromium = spawnSync(PROGRAM, ["--version"]).error === undefined
  ? false : `${PROGRAM} is not installed (TWOEFAY_CHROMIUM)`;

export class Chromium extends EventEmitter {
  #child;
  #home = mkdtempSync(join(tmpdir(), "twoefay-chromium-"));
  #answers = new Map();
  #session;
  #count = 0;
  /** What the browser refused by the page's policy, and errors of scripts. */
  complaints = [];

  static async start() {
    const browser = new Chromium();
    browser.#launch();
    const { targetId } = await browser.send("Target.createTarget", { url: "about:blank" });
    const attached = { targetId, flatten: true };
    browser.#session = (await browser.send("Target.attachToTarget", attached)).sessionId;
    for (const domain of ["Page", "Log", "Runtime", "DOM"]) await browser.send(`${domain}.enable`);
    browser.on("Log.entryAdded", ({ entry }) => {
      const isIcon = entry.url?.endsWith("/favicon.ico"); // the browser asks for it by itself
      if (entry.level === "error" && !isIcon) browser.complaints.push(entry.text);
    });
    browser.on("Runtime.exceptionThrown", ({ exceptionDetails }) => {
      browser.complaints.push(exceptionDetails.text);
    });
    return browser;
  }

  #launch() {
    const words = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
      "--disable-background-networking", "--disable-dev-shm-usage", "--remote-debugging-pipe",
      `--user-data-dir=${this.#home}`];
    const stdio = ["ignore", "ignore", "ignore", "pipe", "pipe"];
    this.#child = spawn(PROGRAM, words, { stdio, env: { ...process.env, HOME: this.#home } });
    let rest = "";
    this.#child.stdio[4].setEncoding("utf8").on("data", (part) => {
      const texts = (rest + part).split("\0");
      rest = texts.pop();
      for (const text of texts) this.#receive(JSON.parse(text));
    });
  }

  #receive({ id, method, params, result, error }) {
    if (method !== undefined) return this.emit(method, params);
    const { go, fail } = this.#answers.get(id);
    if (error) fail(new Error(error.message));
    else go(result);
  }

  send(method, params = {}) {
    const id = ++this.#count;
    const text = JSON.stringify({ id, method, params, sessionId: this.#session });
    this.#child.stdio[3].write(`${text}\0`);
    return new Promise((go, fail) => this.#answers.set(id, { go, fail }));
  }

  /** Opens a page; returns when it is loaded. */
  async open(url) {
    const loaded = once(this, "Page.loadEventFired");
    await this.send("Page.navigate", { url });
    await loaded;
  }

  /** Does something that leads to another page; returns when that is loaded. */
  async leadsOn(action) {
    const loaded = once(this, "Page.loadEventFired");
    await action();
    await loaded;
  }

  async evaluate(expression) {
    const answer = await this.send("Runtime.evaluate", { expression, returnByValue: true });
    if (answer.exceptionDetails) throw new Error(answer.exceptionDetails.exception.description);
    return answer.result.value;
  }

  text() {
    return this.evaluate("document.body.innerText");
  }

  /** Presses and releases the mouse on an element, as a person does. */
  async click(selector, count = 1) {
    const box = `(({ x, y, width, height }) => [x + width / 2, y + height / 2])(
      document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect())`;
    const [x, y] = await this.evaluate(box);
    for (let clickCount = 1; clickCount <= count; clickCount++) {
      for (const type of ["mousePressed", "mouseReleased"]) {
        await this.send("Input.dispatchMouseEvent", { type, x, y, button: "left", clickCount });
      }
    }
  }

  /** Fills the fields of a form, by their names. */
  async fill(fields) {
    for (const [name, value] of Object.entries(fields)) {
      const field = `document.querySelector(${JSON.stringify(`[name="${name}"]`)})`;
      await this.evaluate(`${field}.value = ${JSON.stringify(value)}`);
    }
  }

  async end() {
    const ended = once(this.#child, "exit");
    this.#session = undefined;
    this.send("Browser.close").catch(() => {});
    await ended;
    rmSync(this.#home, { recursive: true, force: true, maxRetries: 5 });
  }
}
