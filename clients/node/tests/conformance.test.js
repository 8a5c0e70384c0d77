/** The cases of clients/conformance, which all languages run: good relays and lying ones. */

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import {
  CheckError, Login, MemoryStore, Refused, TwoefayError, Unreachable, Webhooks,
} from "../src/index.js";
import { decode } from "../src/jws.js";
import { client, Clock, reply } from "./worlds.js";

const file = process.env.TWOEFAY_CASES ?? new URL("../../conformance/cases.json", import.meta.url);
const document = JSON.parse(readFileSync(file, "utf8"));

/** The names of the document as those of JavaScript. */
function camel(object) {
  const rename = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [rename(name), value]));
}

/** One case: a client whose relay gives the answers of the case. */
class Run {
  requests = [];
  store = new MemoryStore();

  constructor(one) {
    this.one = one;
    this.given = one.given;
    const { name, ...settings } = { ...document.defaults, ...one.website };
    const { k } = one.given;
    // Only `k` is chosen by the case: keys of requests must differ all the same.
    const drawn = (size) => (size === 32 ? decode(k) : randomBytes(size));
    this.options = {
      store: this.store,
      clock: new Clock(one.clock),
      ...(typeof k === "string" ? { random: drawn } : {}),
      ...camel({ ...settings, website: name }),
    };
  }

  answer = (request) => {
    const content = request.body === undefined ? null : JSON.stringify(request.body);
    this.requests.push({ ...request, content });
    const { answer, answers } = this.one;
    if (answers) assert(this.requests.length <= answers.length, "one request too many");
    const next = answers ? answers[this.requests.length - 1] : answer;
    if (next === null) throw new Unreachable("lost");
    const number = JSON.parse(content ?? "{}").number ?? "";
    return reply(next.status, next.headers, next.body.replaceAll("{number}", number));
  };

  async outcome(call = this.one.call) {
    try {
      this.client ??= client(this.answer, this.options);
      return await this[call]();
    } catch (error) {
      if (error instanceof TypeError) return { outcome: "unusable" };
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

  // The store

  /** Stores what the website has of a user: pinned phones, the token, and open secrets. */
  keep(username, { pinned = {}, token = null, k = [] }) {
    for (const [device, jwk] of Object.entries(pinned)) {
      const secret = Buffer.from(`k of ${device}`);
      this.store.addSecret(username, secret, this.one.clock);
      assert(this.store.pin(username, device, jwk, secret));
    }
    if (token !== null) this.store.addUser(username, token);
    for (const secret of k) this.store.addSecret(username, decode(secret), this.one.clock);
  }

  keepAll(username = "ada") {
    for (const [other, known] of Object.entries(this.given.others ?? {})) this.keep(other, known);
    this.keep(username, this.given);
  }

  requireOthersAsBefore() {
    for (const [other, { pinned, k }] of Object.entries(this.given.others ?? {})) {
      assert.deepEqual(this.pinsOf(other), pinned);
      assert.equal(this.store.secrets(other, this.one.clock).length, k.length);
    }
  }

  pinsOf(username) {
    return Object.fromEntries(this.store.pins(username));
  }

  // Calls

  decide() {
    return this.decided((login) => this.client.wait(login, { within: 0 }));
  }

  enter() {
    return this.decided((login) => this.client.enter(login, this.given.code));
  }

  async decided(decide) {
    const login = new Login(camel(this.given.login));
    this.keepAll();
    if (this.given.open) this.store.open(login.request, login.askedAt);
    let decision;
    try {
      decision = await decide(login);
    } finally {
      // A login lets in once: the request is spent exactly if the decision is an approval.
      const isOpen = this.store.spend(login.request);
      assert.equal(isOpen, this.given.open && decision?.approved !== true);
      this.requireOthersAsBefore();
    }
    const { state, device, proof, reason, assurance, userVerification } = decision;
    const facts = { device, proof, assurance, user_verification: userVerification };
    if (decision.approved) return { outcome: state, ...facts };
    return { outcome: state, ...(state === "denied" ? { reason } : {}) };
  }

  async confirm() {
    const { username } = this.given;
    this.keepAll(username);
    await this.client.confirm(username);
    this.requireOthersAsBefore();
    return { outcome: "pinned", pinned: this.pinsOf(username) };
  }

  async ask() {
    const { username, ...options } = this.given;
    const login = await this.client.ask(username, camel(options));
    const { request, ...sends } = JSON.parse(this.requests.at(-1).content);
    assert.match(request, /^[0-9a-f]{32}$/);
    for (const [name, value] of Object.entries(login.sent)) {
      assert.deepEqual({ request, ...sends }[name], value);
    }
    return { outcome: "asked", sends, number: login.number };
  }

  async register() {
    return this.enrolled(await this.client.register(this.given.username));
  }

  async enrolment() {
    const { username, token, approval } = this.given;
    this.keep(username, { token });
    return this.enrolled(await this.client.enrolment(username, { approval }));
  }

  enrolled(made) {
    const { username, k } = this.given;
    assert(!JSON.stringify(this.requests).includes(k));
    const secrets = this.store.secrets(username, this.one.clock);
    assert.equal(made.uri === null, secrets.length === 0);
    assert.equal(this.store.token(username), made.token);
    return { outcome: "enrolment", uri: made.uri, sent_to: made.sentTo, awaits: made.awaits };
  }

  async unbind() {
    const { username } = this.given;
    this.keepAll(username);
    const outcome = await this.outcome("unbindPhone");
    this.requireOthersAsBefore();
    const enrolled = await this.client.isEnrolled(username);
    return { ...outcome, pinned: this.pinsOf(username), enrolled };
  }

  async unbindPhone() {
    await this.client.unbind(this.given.username, this.given.device);
    return { outcome: "done" };
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

  // What was sent

  /** The requests, with their keys numbered by first use. */
  sent() {
    const contents = new Map(); // by key
    return this.requests.map(({ method, path, headers, content }) => {
      const key = headers["idempotency-key"] ?? null;
      if (key !== null && !contents.has(key)) contents.set(key, content);
      if (key !== null) assert.equal(contents.get(key), content);
      const body = JSON.parse(content);
      if (path === "/login") delete body.request;
      return { method, path, body, key: key && [...contents.keys()].indexOf(key) + 1 };
    });
  }
}

/** Puts `{2 digits}` in place of a number that the client chose, where one is expected. */
function withoutChoices(actual, expected) {
  const digits = typeof expected === "string" && /^\{([26]) digits\}$/.exec(expected);
  if (digits) {
    const isChosen = typeof actual === "string" && /^[0-9]+$/.test(actual)
      && actual.length === Number(digits[1]);
    return isChosen ? expected : actual;
  }
  if (Array.isArray(actual)) {
    return actual.map((value, index) => withoutChoices(value, expected?.[index]));
  }
  if (actual === null || typeof actual !== "object") return actual;
  return Object.fromEntries(Object.entries(actual)
    .map(([name, value]) => [name, withoutChoices(value, expected?.[name])]));
}

function requireMatch(actual, expected, message) {
  assert.deepStrictEqual(withoutChoices(actual, expected), expected, message);
}

for (const one of document.cases) {
  test(`${one.call} ${one.name}`, async () => {
    const run = new Run(one);
    const outcome = await run.outcome();
    const { requests, ...expected } = one.expected;
    if (requests) requireMatch(run.sent(), requests);
    // A case names the facts that matter, and no others.
    const facts = Object.keys(expected).map((name) => [name, outcome[name] ?? null]);
    requireMatch(Object.fromEntries(facts), expected, JSON.stringify(outcome));
  });
}
test("the suite has cases", () => assert(document.cases.length > 200));
