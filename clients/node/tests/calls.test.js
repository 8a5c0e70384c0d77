/** Retries, idempotency and limits, with a relay that is a function. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import {
  BindingError, Conflict, Invalid, Limited, Login, MemoryStore, OddAnswer, TwoefayError,
  Unavailable, Unreachable,
} from "../src/index.js";
import { client, Clock, JSON_TYPE, LOGIN, NOW, problem, reply, script } from "./worlds.js";

const login = () => new Login({
  challenge: "c".repeat(32), number: "47", askedAt: NOW, sent: { username: "ada", request: "r" },
});
const lost = () => {
  throw new Unreachable("lost");
};
const gateway = () => reply(504, { "content-type": "text/html" }, "<h1>Gateway timeout</h1>");
const unavailable = () => problem("unavailable", 503);
const denied = () => reply(200, JSON_TYPE, { login: "failure", reason: "denied" });

test("lost answers are repeated under one key", async () => {
  const relay = script(
    new Unreachable("refused"),
    reply(502, { "content-type": "text/html" }, "<h1>Bad gateway</h1>"),
    problem("unavailable", 503, { "retry-after": "1" }),
    LOGIN,
  );
  const clock = new Clock();
  assert.equal((await client(relay, { clock }).ask("ada", { number: "47" })).number, "47");
  assert.equal(new Set(relay.keys()).size, 1);
  assert.match(relay.keys()[0], /^[0-9a-f]{32}$/);
  assert.equal(new Set(relay.calls.map(({ body }) => JSON.stringify(body))).size, 1);
  assert.deepEqual(clock.pauses, clock.pauses.toSorted((a, b) => a - b));
  assert(clock.pauses[2] >= 1);
});

test("a call that still runs is repeated", async () => {
  const relay = script(problem("conflict", 409, { "retry-after": "1" }), LOGIN);
  const clock = new Clock();
  await client(relay, { clock }).ask("ada", { number: "47" });
  assert.deepEqual(clock.pauses, [1]);
  assert.equal(new Set(relay.keys()).size, 1);
});

test("two calls have two keys and two requests", async () => {
  const relay = script(LOGIN, LOGIN);
  const shop = client(relay);
  const ask = async () => (await shop.ask("ada", { number: "47" })).request;
  assert.notEqual(await ask(), await ask());
  assert.equal(new Set(relay.keys()).size, 2);
});

test("the number is chosen here, with its zeros", async () => {
  const numbers = [];
  const relay = ({ body: { number } }) => {
    numbers.push(number);
    return reply(201, JSON_TYPE, { ...LOGIN, number });
  };
  const zeros = (size) => Buffer.alloc(size);
  assert.equal((await client(relay, { random: zeros }).ask("ada")).number, "00");
  for (const digits of [2, 4, 6]) {
    const shop = client(relay, { leastDigits: digits });
    for (let round = 0; round < 40; round++) {
      assert.equal((await shop.ask("ada")).number.length, digits);
    }
  }
  assert(new Set(numbers.slice(-40)).size > 30); // of a million
});

test("patience ends", async () => {
  const clock = new Clock();
  await assert.rejects(client(lost, { clock }).ask("ada"), Unreachable);
  const slept = clock.pauses.reduce((sum, pause) => sum + pause, 0);
  assert(slept > 0 && slept <= 3);
});

test("a long pause is told and not slept", async () => {
  for (const [answer, kind] of [
    [problem("limited", 429, { "retry-after": "1" }), Limited],
    [problem("limited", 429, { "retry-after": "3600" }), Limited],
    [problem("unavailable", 503, { "retry-after": "30" }), Unavailable],
  ]) {
    const clock = new Clock();
    const error = await client(() => answer, { clock }).ask("ada").catch((error) => error);
    assert(error instanceof kind && error.retryAfter > 0);
    assert.deepEqual(clock.pauses, []);
  }
});

test("an odd pause is none", async () => {
  for (const wish of ["", "soon", "-1", "1.5", "9".repeat(40), "\u0661"]) {
    const answer = problem("limited", 429, { "retry-after": wish });
    const error = await client(() => answer).ask("ada").catch((error) => error);
    assert(error instanceof Limited && error.retryAfter === null);
  }
});

test("a conflict without a pause is final, and a PATCH is sent once", async () => {
  const relay = script(problem("conflict", 409));
  await assert.rejects(client(relay).register("ada"), Conflict);
  assert.equal(relay.calls.length, 1);
  const clock = new Clock();
  await assert.rejects(client(lost, { clock }).call("PATCH", "/user/ada", {}), Unreachable);
  assert.deepEqual(clock.pauses, []);
});

test("a call has its method in capitals, and a whole path", async () => {
  const relay = script(LOGIN);
  await client(relay).call("post", "/login", { username: "ada" });
  assert.equal(relay.calls[0].method, "POST");
  assert.match(relay.keys()[0], /^[0-9a-f]{32}$/);
  const clock = new Clock();
  await assert.rejects(client(lost, { clock }).call("patch", "/user/ada", {}), Unreachable);
  assert.deepEqual(clock.pauses, []);
  const circular = {};
  circular.itself = circular;
  for (const [method, path, body] of [
    ["GET", "user/ada"], ["GET", ".evil.example/x"], ["GET", "/a b"], ["GET /x", "/"], ["", "/"],
    ["GET", "/\r\nx: y"], [7, "/"], ["GET", 7], ["POST", "/login", circular],
  ]) {
    const relay = script();
    await assert.rejects(client(relay).call(method, path, body), TypeError);
    assert.equal(relay.calls.length, 0);
  }
});

test("an answer with many phones reads the open codes once", async () => {
  let uses = 0;
  class Counting extends MemoryStore {
    secrets(...values) {
      uses++;
      return super.secrets(...values);
    }
  }
  const devices = Array.from({ length: 2000 }, (_, index) => (
    { device: `d${index}`, state: "active", binding: 0 }));
  const user = reply(200, JSON_TYPE, { token: "t", factors: [], devices });
  const shop = client(script(user), { store: new Counting() });
  await assert.rejects(shop.confirm("ada"), BindingError);
  assert.equal(uses, 1);
});

test("/auth takes no key", async () => {
  const relay = script(reply(200, JSON_TYPE, { login: "wait" }), denied());
  assert.equal((await client(relay).wait(login())).reason, "denied");
  assert.deepEqual(relay.keys(), [undefined, undefined]);
  assert.deepEqual(relay.calls.map(({ headers }) => headers.prefer), ["wait=60", "wait=60"]);
});

test("waiting in a visitor's request does not sleep for a limit", async () => {
  const clock = new Clock();
  const relay = script(problem("limited", 429, { "retry-after": "4" }));
  await assert.rejects(client(relay, { clock }).wait(login(), { within: 10 }), Limited);
  assert.deepEqual(clock.pauses, []);
});

/** A relay that answers after a time: each step is the time and the answer. */
const held = (clock, ...steps) => () => {
  const [seconds, answer] = steps.shift();
  clock.now += seconds;
  return answer();
};

test("a held request that is lost is repeated", async () => {
  for (const within of [null, 120]) {
    for (const fault of [lost, gateway, unavailable]) {
      const clock = new Clock();
      const shop = client(held(clock, [58, fault], [0, denied]), { clock });
      assert.equal((await shop.wait(login(), { within })).reason, "denied");
    }
  }
});

test("a wait without an end survives a long outage, and ends with the challenge", async () => {
  for (const fault of [lost, gateway, unavailable]) {
    const clock = new Clock();
    const steps = [...Array.from({ length: 40 }, () => [2, fault]), [0, denied]];
    assert.equal((await client(held(clock, ...steps), { clock }).wait(login())).reason, "denied");
  }
  const clock = new Clock();
  await assert.rejects(client(lost, { clock }).wait(login()), Unreachable);
  assert(clock.now - NOW >= 590 && clock.now - NOW <= 604); // with the patience of the last call
  for (const page of [reply(404, { "content-type": "text/html" }, ""), problem("not_found", 404)]) {
    await assert.rejects(client(script(page)).wait(login()), TwoefayError);
  }
});

test("the lost answer of a registration leads to another code", async () => {
  const activation = { uri: "twoefay://enrol?code=abc", expires_at: "2026-11-22T08:10:00.000Z" };
  const user = { token: "t".repeat(32), factors: [], devices: [] };
  const relay = script(problem("shown_once", 409), reply(200, JSON_TYPE, user), activation);
  const store = new MemoryStore();
  const made = await client(relay, { store }).register("ada");
  assert.match(made.uri, /^twoefay:\/\/enrol\?code=abc&k=[\w-]{43}$/);
  assert.equal(store.token("ada"), user.token);
  assert.notEqual(relay.keys()[0], relay.keys()[2]);
});

test("an enrolment is not printed and not made JSON with its secret", async () => {
  const activation = { uri: "twoefay://enrol?code=abc", expires_at: "2026-11-22T08:10:00.000Z" };
  const made = await client(script({ token: "t", activation })).register("ada");
  for (const text of [inspect(made), JSON.stringify(made), String(made)]) {
    assert(!text.includes("twoefay://"), text);
  }
  assert(inspect(made).includes("expiresAt"));
});

test("a name that is no segment of a path is refused here", async () => {
  const shop = client(script());
  for (const name of ["", ".", "..", "half \ud800", null, 7]) {
    for (const call of ["factors", "confirm", "enrolment", "register", "forget"]) {
      await assert.rejects(shop[call](name), TypeError, `${call} of ${name}`);
    }
  }
});

test("a name cannot lead to another route", async () => {
  const relay = script(reply(200, JSON_TYPE, { token: "t", factors: [], devices: [] }));
  await client(relay).factors("../health?x=%2e&y#z");
  assert.equal(relay.calls[0].path, "/user/..%2Fhealth%3Fx%3D%252e%26y%23z");
});

test("a compressed answer is not unpacked, and a redirect not followed", async () => {
  const packed = reply(200, { ...JSON_TYPE, "content-encoding": "gzip" }, "not gzip");
  await assert.rejects(client(() => packed).factors("ada"), OddAnswer);
  const relay = script(reply(307, { location: "https://login.example.org/login" }, ""));
  await assert.rejects(client(relay).ask("ada"), OddAnswer);
  assert.equal(relay.calls.length, 1);
});

test("odd JSON is an odd answer, and nothing worse", async () => {
  const deep = "[".repeat(100_000) + "]".repeat(100_000);
  for (const body of [
    `{"a": ${deep}}`, '{"a": 1, "\\u0061": 2}', '{"a": "\\ud800"}', "\ufeff{}", "[]", "null", "",
    '{"a": NaN}', "{'a': 1}", '"text"', '{"devices": {"a": 1, "a": 1}}',
  ]) {
    await assert.rejects(client(() => reply(200, JSON_TYPE, body)).user("ada"), OddAnswer, body);
  }
  const fine = '{"__proto__": {"token": "x"}, "a": {"b": "\\"}{:"},'
    + ' "b": [{"b": "\\\\"}, {"b": 1}]}';
  const user = await client(() => reply(200, JSON_TYPE, fine)).user("ada");
  assert.equal(user.token, undefined);
});

test("a problem with odd members is still an error", async () => {
  const more = {
    detail: { toString: 1 }, errors: [null, { parameter: ["a"], code: 1 }, { parameter: "ip" }],
  };
  const error = await client(() => problem("invalid", 400, {}, more)).ask("ada").catch((e) => e);
  assert(error instanceof Invalid);
  assert.deepEqual(error.faults, { ip: "" });
  const lines = problem("invalid", 400, {}, { detail: "one\ntwo\u001b[31m" });
  const printed = await client(() => lines).ask("ada").catch((e) => e);
  assert(!/\p{Cc}/u.test(printed.message));
});

test("options with other names or values are refused", async () => {
  const shop = client(script());
  await assert.rejects(shop.ask("ada", { minAssurence: "high" }), TypeError);
  await assert.rejects(shop.ask("ada", { minAssurance: "highest" }), TypeError);
  await assert.rejects(shop.register("ada", { display_name: "Ada" }), TypeError);
  await assert.rejects(shop.wait(login(), { within: "soon" }), TypeError);
  for (const odd of [
    { allowUnpinned: "false" }, { acceptCodes: 1 }, { leastDigits: -1 }, { leastDigits: "2" },
    { leastUserVerification: "face" }, { longestVerificationAge: Infinity }, { store: {} },
    { phones: ["web"] }, { appOrigin: "phone.example.net" }, { loginOrigins: "https://a.example" },
  ]) {
    assert.throws(() => client(script(), odd), TypeError, JSON.stringify(odd));
  }
});

test("the record survives a session, and is a copy", async () => {
  const details = [{ label: "a", value: "b" }];
  const shop = client(script(LOGIN, denied()));
  const asked = await shop.ask("ada", { number: "47", ip: "192.0.2.7", details });
  details[0].value = "c";
  assert.equal(asked.sent.details[0].value, "b");
  const kept = JSON.parse(JSON.stringify(asked));
  assert.deepEqual(Login.fromJSON(kept), asked);
  assert.equal((await shop.wait(kept, { within: 0 })).state, "denied");
  const others = [{ ...kept, sent: { username: "ada" } }, { ...kept, number: 7 }];
  for (const odd of [null, "x", {}, ...others]) {
    assert.throws(() => Login.fromJSON(odd), TypeError);
  }
});

test("languages of a browser cannot add header fields", async () => {
  for (const [accepted, sent] of [
    ["de-AT, de;q=0.9", "de-AT, de;q=0.9"], ["de\r\nx: y", undefined], ["\u00fc", undefined],
    ["x".repeat(257), undefined], ["", undefined], [undefined, undefined],
  ]) {
    const relay = script(LOGIN);
    await client(relay).ask("ada", { number: "47", acceptLanguage: accepted });
    assert.equal(relay.calls[0].headers["accept-language"], sent);
  }
});
