/** The cases of clients/conformance, which all languages run: good relays and lying ones. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { CheckError, Login, MemoryStore, Refused, TwoefayError, Webhooks } from "../src/index.js";
import { decode } from "../src/jws.js";
import { client, Clock, reply } from "./worlds.js";

const file = process.env.TWOEFAY_CASES ?? new URL("../../conformance/cases.json", import.meta.url);
const document = JSON.parse(readFileSync(file, "utf8"));

/** The names of the document as those of JavaScript. */
function camel(object) {
  const rename = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [rename(name), value]));
}

/** One case: a client whose relay gives the case's answer to each request. */
class Run {
  bodies = [];
  store = new MemoryStore();

  constructor(one) {
    this.one = one;
    this.given = one.given;
    const { name, ...settings } = { ...document.defaults, ...one.website };
    const isDrawn = one.call === "register";
    this.client = client(this.answer, {
      store: this.store,
      clock: new Clock(one.clock),
      ...(isDrawn ? { random: (size) => decode(one.given.k).subarray(0, size) } : {}),
      ...camel({ ...settings, website: name }),
    });
  }

  answer = ({ body }) => {
    if (body !== undefined) this.bodies.push(structuredClone(body));
    const { status, headers, body: text } = this.one.answer;
    return reply(status, headers, text);
  };

  async outcome() {
    try {
      return await this[this.one.call]();
    } catch (error) {
      if (error instanceof CheckError) {
        const { word, reason, field } = error;
        return { outcome: "refused", error: word, reason, ...(field ? { field } : {}) };
      }
      if (!(error instanceof TwoefayError)) throw error;
      const { word, code, challenge, number, retryAfter } = error;
      const facts = error instanceof Refused
        ? { code, challenge, number, retry_after: retryAfter } : {};
      return { outcome: "error", error: word, ...facts };
    }
  }

  async decide() {
    const login = new Login(camel(this.given.login));
    this.pin(this.given.pinned);
    if (this.given.open) this.store.open(login.request, login.askedAt);
    let decision;
    try {
      decision = await this.client.wait(login, { within: 0 });
    } finally {
      // A login lets in once: the request is spent exactly if the decision is an approval.
      const isOpen = this.store.spend(login.request);
      assert.equal(isOpen, this.given.open && decision?.approved !== true);
    }
    const { state, device, proof, reason } = decision;
    if (decision.approved) return { outcome: state, device, proof };
    return { outcome: state, ...(state === "denied" ? { reason } : {}) };
  }

  async confirm() {
    const { username, token, k, pinned } = this.given;
    this.pin(pinned, username);
    this.store.addUser(username, token);
    for (const secret of k) this.store.addSecret(username, decode(secret), this.one.clock);
    await this.client.confirm(username);
    return { outcome: "pinned", pinned: Object.fromEntries(this.store.pins(username)) };
  }

  async ask() {
    const { username, ...options } = this.given;
    const login = await this.client.ask(username, camel(options));
    assert.equal(this.bodies.length, 1);
    const { request, ...sends } = this.bodies[0];
    assert.match(request, /^[0-9a-f]{32}$/);
    for (const [name, value] of Object.entries(login.sent)) {
      assert.deepEqual(this.bodies[0][name], value);
    }
    return { outcome: "asked", sends, number: login.number };
  }

  async register() {
    const made = await this.client.register(this.given.username);
    assert(!JSON.stringify(this.bodies).includes(this.given.k));
    const secrets = this.store.secrets(this.given.username, this.one.clock);
    assert.equal(made.uri === null, secrets.length === 0);
    return { outcome: "enrolment", uri: made.uri, sent_to: made.sentTo, awaits: made.awaits };
  }

  async factors() {
    const found = await this.client.factors(this.given.username);
    return { outcome: "factors", kinds: found.map(({ kind }) => kind) };
  }

  webhook() {
    const inbox = new Webhooks(this.given.secrets, { clock: () => this.one.clock });
    const { type, id } = inbox.verify(this.given.headers, Buffer.from(this.given.body));
    return { outcome: "event", type, id };
  }

  pin(pinned, username = "ada") {
    for (const [device, jwk] of Object.entries(pinned)) {
      const k = Buffer.from(`k of ${device}`);
      this.store.addSecret(username, k, this.one.clock);
      assert(this.store.pin(username, device, jwk, k));
    }
  }
}

for (const one of document.cases) {
  test(`${one.call} ${one.name}`, async () => {
    const outcome = await new Run(one).outcome();
    // A case names the facts that matter, and no others.
    const facts = Object.keys(one.expected).map((name) => [name, outcome[name] ?? null]);
    assert.deepEqual(Object.fromEntries(facts), one.expected, JSON.stringify(outcome));
  });
}
test("the suite has cases", () => assert(document.cases.length > 200));
