/** The part for Express, with a relay that is an object of the test. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { SecondFactor } from "../src/express.js";
import { Decision, Login, ReceiptError, Unreachable } from "../src/index.js";
import { BY_CODE } from "../src/errors.js";
import { installed } from "./databases.js";
import { NOW } from "./worlds.js";

const express = installed("express");
const skip = express ? false : "express is not installed (node-express)";

const login = new Login({
  challenge: "c", number: "47", askedAt: NOW, sent: { username: "ada", request: "r" },
});
const refused = (code, status, headers = {}) => {
  const kind = BY_CODE.get(code);
  return new kind({ code, status }, status, headers);
};
const throwing = (error) => async () => {
  throw error;
};

/** A site with one session, in the shape of cookie-session, and the requests to it. */
async function start(context, relay, { parser = null, options = {}, session = {} } = {}) {
  const approved = [], lines = [];
  const fake = { policy: { acceptCodes: true }, ask: async () => login, ...relay };
  const factor = new SecondFactor(fake, {
    onApproved(request, response, username, { target }) {
      approved.push(`${username} to ${target}`);
      response.send("welcome");
    },
    log: (line) => lines.push(line),
    ...options,
  });
  const site = { session, approved, lines };
  const app = express();
  app.use((request, response, next) => {
    Object.defineProperty(request, "session", {
      get: () => site.session,
      set: (values) => (site.session = values),
    });
    next();
  });
  if (parser) app.use(parser);
  app.use(factor.path, factor.router);
  app.post("/login", (request, response, next) => {
    factor.start(request, response, "ada", {}, { target: "/cart" }).catch(next);
  });
  app.use((error, request, response, next) => response.status(500).send(error.message));
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  context.after(() => {
    server.close();
    server.closeAllConnections();
  });
  site.send = async (path, form) => {
    const answer = await fetch(`http://127.0.0.1:${server.address().port}${path}`, {
      method: form ? "POST" : "GET",
      redirect: "manual",
      ...(form ? { body: new URLSearchParams(form) } : {}),
    });
    const { status, headers } = answer;
    return { status, headers, page: await answer.text() };
  };
  site.finish = (fields = {}) => {
    const form_token = site.session.twoefay?.token ?? "";
    return site.send("/second-factor/", { form_token, ...fields });
  };
  return site;
}

const decided = (state, facts = {}) => async () => new Decision(state, facts, {});

test("a form is read with and without a parser of the application", { skip }, async (context) => {
  for (const parser of [
    null, express?.json(), express?.urlencoded({ extended: false }),
    express?.urlencoded({ extended: true }),
  ]) {
    const site = await start(context, { wait: decided("approved") }, { parser });
    site.session.old = "of somebody else";
    await site.send("/login", { a: "b" });
    assert.equal(site.session.old, undefined);
    assert.equal((await site.finish()).page, "welcome");
    assert.deepEqual([site.approved, site.session], [["ada to /cart"], {}]);
  }
});

test("errors let nobody in, and say what the visitor can do", { skip }, async (context) => {
  const limited = refused("limited", 429, { "retry-after": "7" });
  for (const [error, status, text, ended] of [
    [limited, 429, "7 seconds", false],
    [refused("codes_locked", 403), 403, "No code is accepted", false],
    [refused("invalid", 400), 400, "not accepted", false],
    [new Unreachable("lost"), 503, "cannot be reached", false],
    [new ReceiptError("signature"), 403, "could not be verified", true],
  ]) {
    const site = await start(context, { wait: throwing(error) });
    await site.send("/login", {});
    const { page, ...answer } = await site.finish();
    assert.deepEqual([answer.status, page.includes("<form")], [status, !ended], error.word);
    assert(page.includes(text), page);
    assert.equal(site.session.twoefay === undefined, ended);
    assert.deepEqual(site.approved, []);
    const isKnown = ["limited", "codes_locked", "invalid"].includes(error.word);
    assert.equal(site.lines.length, isKnown ? 0 : 1);
  }
});

test("a login that cannot be opened is told", { skip }, async (context) => {
  const limited = refused("limited", 429, { "retry-after": "7" });
  const site = await start(context, { ask: throwing(limited) });
  const { status, headers, page } = await site.send("/login", {});
  assert.deepEqual([status, headers.get("retry-after")], [429, "7"]);
  assert(!page.includes("<form") && site.session.twoefay === undefined);
  const faulty = await start(context, { ask: throwing(new Error("a bug")) });
  assert.equal((await faulty.send("/login", {})).status, 500);
});

test("a code is entered, and a phone that was faster counts", { skip }, async (context) => {
  const codes = [];
  const site = await start(context, {
    enter: async (_, code) => {
      codes.push(code);
      if (code === "111111") return new Decision("open", {}, {});
      throw refused("already_decided", 409);
    },
    wait: decided("approved"),
  });
  await site.send("/login", {});
  assert((await site.send("/second-factor/")).page.includes('name="code"'));
  assert((await site.finish({ code: " 111111 " })).page.includes("This code is wrong."));
  assert.equal((await site.finish({ code: "222222" })).page, "welcome");
  assert.deepEqual(codes, ["111111", "222222"]);
});

test("what another submission has spent changes no session", { skip }, async (context) => {
  const site = await start(context, { wait: throwing(new ReceiptError("request_used")) });
  await site.send("/login", {});
  const before = structuredClone(site.session);
  const { status, headers } = await site.finish();
  assert.deepEqual([status, headers.get("location")], [303, "/"]);
  assert.deepEqual(site.session, before);
});

test("the state is told without a check, and an outage as one", { skip }, async (context) => {
  const site = await start(context, { state: throwing(new Unreachable("lost")) });
  assert.deepEqual(JSON.parse((await site.send("/second-factor/state")).page), { ended: true });
  await site.send("/login", {});
  const { status, page } = await site.send("/second-factor/state");
  assert.deepEqual([status, JSON.parse(page)], [503, { ended: false }]);
});

test("a login that the relay has forgotten is an end", { skip }, async (context) => {
  const forgotten = throwing(refused("not_found", 404));
  const site = await start(context, { state: forgotten, wait: forgotten });
  await site.send("/login", {});
  const { status, page } = await site.send("/second-factor/state");
  assert.deepEqual([status, JSON.parse(page)], [200, { ended: true }]);
  const answer = await site.finish();
  assert(answer.status === 403 && !answer.page.includes("<form"));
  assert.equal(site.session.twoefay, undefined);
  assert.deepEqual(site.approved, []);
});

test("odd sessions are none, and missing ones an error", { skip }, async (context) => {
  for (const twoefay of [{}, "x", { login: { challenge: 7 } }, { login: [], token: "x" }]) {
    const site = await start(context, {}, { session: { twoefay } });
    assert.equal((await site.send("/second-factor/")).status, 303);
  }
  const site = await start(context, {}, { session: null });
  for (const path of ["/second-factor/", "/second-factor/state"]) {
    const { status, page } = await site.send(path);
    assert.deepEqual([status, page], [500, "the second factor needs sessions"]);
  }
  assert.equal((await site.send("/login", {})).status, 500);
});

test("a login that no cookie can hold is refused", { skip }, async (context) => {
  const details = [{ label: "text", value: "x".repeat(4_000) }];
  const long = new Login({ ...login, sent: { ...login.sent, details } });
  const site = await start(context, { ask: async () => long });
  const { status, page } = await site.send("/login", {});
  assert.deepEqual([status, page], [500, "the login does not fit into a cookie"]);
  // A session of express-session has only its id in the cookie.
  const session = { regenerate: (done) => done() };
  const other = await start(context, { ask: async () => long }, { session });
  assert.equal((await other.send("/login", {})).status, 303);
});

test("texts are escaped, and the page can be replaced", { skip }, async (context) => {
  const odd = "<script>&\"'";
  const asked = new Login({ ...login, number: odd });
  const site = await start(context, { ask: async () => asked });
  await site.send("/login", {});
  const { page } = await site.send("/second-factor/");
  assert(page.includes("&lt;script&gt;&amp;&quot;&#39;") && !page.includes(odd));
  const render = ({ number }) => `own page: ${number}`;
  const other = await start(context, {}, { options: { render } });
  await other.send("/login", {});
  assert.equal((await other.send("/second-factor/")).page, "own page: 47");
  assert.throws(() => new SecondFactor({}, {}), TypeError);
  assert.throws(() => new SecondFactor({}, { onApproved() {}, rendr: render }), TypeError);
});
