/** The example site: requests, a real browser, a real relay, and a real phone. */

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { createApp } from "../examples/express_site.mjs";
import { MemoryStore } from "../src/index.js";
import { Chromium, lacksChromium } from "./chromium.js";
import { installed } from "./databases.js";
import { lacksPrograms, RealRelay } from "./real.js";

const express = installed("express");
const readsCodes = ["zbarimg", "rsvg-convert"]
  .every((program) => spawnSync(program, ["--version"]).error === undefined);
const skip = lacksPrograms || (express ? false : "express is not installed (node-express)")
  || (readsCodes ? false : "zbarimg or rsvg-convert is not installed (zbar-tools, librsvg2-bin)");

const USERS = ["ada", "bob", "cleo", "dora", "emil", "fay", "gil", "hal"];
const PASSWORDS = new Map(USERS.map((user) => [user, `correct horse of ${user}`]));
const formOf = (username) => ({ username, password: PASSWORDS.get(username) });

/** The requests of a browser, with its cookies. */
class Visitor {
  cookies = new Map();

  constructor(site) {
    this.site = site;
  }

  async request(path, form) {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const answer = await fetch(this.site + path, {
      method: form ? "POST" : "GET",
      redirect: "manual",
      headers: { cookie, "user-agent": "Evil\u00ad browser/1.0" },
      ...(form ? { body: new URLSearchParams(form) } : {}),
    });
    for (const line of answer.headers.getSetCookie()) {
      const [name, value] = line.split(";", 1)[0].split("=");
      this.cookies.set(name, value);
    }
    const page = await answer.text();
    return { status: answer.status, headers: answer.headers, page };
  }

  get(path) {
    return this.request(path);
  }

  post(path, form) {
    return this.request(path, form);
  }
}

/** The number and the fields of the waiting page, which is checked, too. */
async function waitingPage(visitor) {
  const { status, headers, page } = await visitor.get("/second-factor/");
  assert.equal(status, 200);
  const policy = headers.get("content-security-policy");
  const nonce = /script-src 'nonce-([\w-]+)'/.exec(policy)[1];
  assert(policy.startsWith("default-src 'none'") && headers.get("cache-control") === "no-store");
  assert(!/\s(src|href|srcset|style|on[a-z]+)=/.test(page));
  const nonces = page.matchAll(/<(?:script|style) nonce="([\w-]+)"/g);
  assert.deepEqual([...nonces].map(([, found]) => found), [nonce, nonce]);
  const [, number] = /class="number">([0-9]+)</.exec(page);
  const [, token] = /name="form_token" value="([\w-]+)"/.exec(page);
  return { number, form: { form_token: token } };
}

describe("the example site", { skip }, () => {
  let real, server, site, relay;
  const asked = [], store = new MemoryStore();

  before(async () => {
    real = await RealRelay.start();
    writeFileSync(join(real.directory, "shop.secret"), `whsec_${"A".repeat(32)}`);
    const made = createApp({
      express, origin: real.origin, files: real.directory, store, passwords: PASSWORDS,
    });
    relay = made.relay;
    const { ask } = relay;
    relay.ask = async (...values) => { // notes the challenges, which the pages do not show
      asked.push(await ask.apply(relay, values));
      return asked.at(-1);
    };
    server = made.app.listen(0, "127.0.0.1");
    await once(server, "listening");
    site = `http://localhost:${server.address().port}`;
  });

  after(async () => {
    relay.close();
    server.close();
    server.closeAllConnections();
    await real.end();
  });

  /** Reads the QR code of a page, as the camera of a phone does. */
  function read(page, name) {
    const [svg, png] = ["svg", "png"].map((kind) => join(real.directory, `${name}.${kind}`));
    writeFileSync(svg, /<svg.*<\/svg>/s.exec(page)[0]);
    execFileSync("rsvg-convert", ["--output", png, svg]);
    const words = ["--quiet", "--nodbus", "--raw", "-Sdisable", "-Sqrcode.enable", png];
    return execFileSync("zbarimg", words, { encoding: "utf8", stdio: "pipe" }).trim();
  }

  async function enrolled(username) {
    const visitor = new Visitor(site);
    const { status, headers, page } = await visitor.post("/login", formOf(username));
    assert.deepEqual([status, headers.get("cache-control")], [200, "no-store"]);
    await real.enrol(read(page, username), username);
    return visitor;
  }

  const approve = (username) => {
    const { challenge, number } = asked.at(-1);
    return real.answer("approve", challenge, number, username);
  };

  test("a user logs in by a phone", async () => {
    const visitor = new Visitor(site);
    await visitor.post("/login", formOf("ada")); // closes the page, and gets another code
    await real.enrol(read((await visitor.post("/login", formOf("ada"))).page, "ada"), "ada");
    assert.equal((await visitor.post("/login", { ...formOf("ada"), password: "x" })).status, 403);
    const former = visitor.cookies.get("session");
    const { status, headers } = await visitor.post("/login", formOf("ada"));
    assert.deepEqual([status, headers.get("location")], [303, "/second-factor/"]);
    assert.notEqual(visitor.cookies.get("session"), former);
    const { form, number } = await waitingPage(visitor);
    assert.equal(number, asked.at(-1).number);
    const state = async () => JSON.parse((await visitor.get("/second-factor/state")).page);
    assert.deepEqual(await state(), { ended: false });
    assert.equal((await visitor.post("/second-factor/", form)).status, 200); // too early
    assert.equal(await approve("ada"), 0);
    assert.deepEqual(await state(), { ended: true });
    assert(!(await visitor.get("/")).page.includes("Welcome")); // only the POST lets in
    for (const forged of [{ form_token: "x" }, {}, { form_token: "x".repeat(20_000) }]) {
      assert.equal((await visitor.post("/second-factor/", forged)).status, 403);
    }
    const waiting = visitor.cookies.get("session");
    const done = await visitor.post("/second-factor/", form);
    assert.deepEqual([done.status, done.headers.get("location")], [303, "/"]);
    assert.notEqual(visitor.cookies.get("session"), waiting);
    assert((await visitor.get("/")).page.includes("Welcome, ada"));
    // A second submission neither ends the session nor begins another one.
    const again = await visitor.post("/second-factor/", form);
    assert.deepEqual([again.status, again.headers.get("location")], [303, "/"]);
    assert((await visitor.get("/")).page.includes("Welcome, ada"));
  });

  test("two submissions at once let in once", async () => {
    const visitor = await enrolled("bob");
    await visitor.post("/login", formOf("bob"));
    const { form } = await waitingPage(visitor);
    assert.equal(await approve("bob"), 0);
    const tabs = [0, 1, 2].map(() => {
      const tab = new Visitor(site);
      tab.cookies = new Map(visitor.cookies);
      return tab;
    });
    const answers = await Promise.all(tabs.map((tab) => tab.post("/second-factor/", form)));
    assert.deepEqual(answers.map(({ status }) => status), [303, 303, 303]);
    const pages = await Promise.all(tabs.map(async (tab) => (await tab.get("/")).page));
    assert.equal(pages.filter((page) => page.includes("Welcome, bob")).length, 1);
  });

  test("a denied login lets nobody in", async () => {
    const visitor = await enrolled("cleo");
    await visitor.post("/login", formOf("cleo"));
    const { form } = await waitingPage(visitor);
    assert.equal(await real.answer("deny", asked.at(-1).challenge, null, "cleo"), 0);
    const { status, page } = await visitor.post("/second-factor/", form);
    assert.equal(status, 403);
    assert(page.includes("not approved") && !page.includes("<form"));
    assert(!(await visitor.get("/")).page.includes("Welcome"));
    assert.equal((await visitor.get("/second-factor/")).status, 303);
  });

  test("an unbound phone makes no room for another", async () => {
    const visitor = await enrolled("dora");
    assert.equal((await visitor.post("/login", formOf("dora"))).status, 303);
    const [device] = store.pins("dora").keys();
    store.unpinByToken(store.token("dora"), device); // as the relay's webhook does
    const { status, page } = await visitor.post("/login", formOf("dora"));
    assert.equal(status, 403);
    assert(page.includes("help desk") && !page.includes("<svg"));
  });

  test("other requests do no harm", async () => {
    const visitor = new Visitor(site);
    assert.equal((await visitor.get("/second-factor/other")).status, 404);
    assert.equal((await visitor.post("/second-factor/", { form_token: "x" })).status, 303);
    assert.equal((await visitor.post("/webhook", { type: "x" })).status, 400);
    for (const form of [{}, { username: "__proto__", password: "" }]) {
      assert.equal((await visitor.post("/login", form)).status, 403);
    }
  });

  describe("in Chromium", { skip: lacksChromium }, () => {
    let browser;
    before(async () => (browser = await Chromium.start()));
    after(() => browser.end());

    async function logIn(username) {
      await browser.send("Network.clearBrowserCookies");
      await browser.open(site);
      await browser.fill(formOf(username));
      await browser.leadsOn(() => browser.click("button"));
    }

    test("the page sends itself once the phone has approved", async () => {
      await enrolled("emil");
      await logIn("emil");
      assert((await browser.text()).includes(asked.at(-1).number));
      await browser.leadsOn(() => approve("emil"));
      assert.equal(await browser.text(), "Welcome, emil");
      assert.deepEqual(browser.complaints, []);
    });

    test("the page works without a script", async () => {
      await enrolled("fay");
      await browser.send("Emulation.setScriptExecutionDisabled", { value: true });
      await logIn("fay");
      assert((await browser.text()).includes(asked.at(-1).number));
      assert.equal(await approve("fay"), 0);
      await browser.leadsOn(() => browser.click("button"));
      await browser.send("Emulation.setScriptExecutionDisabled", { value: false });
      assert.equal(await browser.text(), "Welcome, fay");
      assert.deepEqual(browser.complaints, []);
    });

    test("a double click logs in", async () => {
      await enrolled("gil");
      await logIn("gil");
      assert.equal(await approve("gil"), 0);
      await browser.leadsOn(() => browser.click("button", 2));
      await browser.open(site);
      assert.equal(await browser.text(), "Welcome, gil");
    });

    test("a double click without a script does no harm", async () => {
      await enrolled("hal");
      await browser.send("Emulation.setScriptExecutionDisabled", { value: true });
      await logIn("hal");
      assert.equal(await approve("hal"), 0);
      await browser.leadsOn(() => browser.click("button", 2));
      await browser.send("Emulation.setScriptExecutionDisabled", { value: false });
      await browser.open(site);
      // The browser may drop the first answer, and with it the cookie of the new session.
      assert(["Welcome, hal", "Log in"].includes(await browser.text()));
    });
  });
});
