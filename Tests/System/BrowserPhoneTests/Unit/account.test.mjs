// The own account: what the relay may answer, and what a report of a past login signs and sends.
import { test } from "node:test";
import assert from "node:assert/strict";
import { asset } from "./assets.mjs";

const { CallFailure, RelayLine } = await import(asset("calls.js"));
const { LinkedAccount, PhoneAccount, isRevocationCode, readAccount, readAccountLink, revoke } = await import(asset("own-account.js"));
const { Responder } = await import(asset("device.js"));
const { makeKey, jwkOf } = await import(asset("signing.js"));

const context = {
  v: 1, website: "shop", display_name: "The Shop", username: "alice", place: "Berlin, DE", number_digits: 2,
  created_at: "2026-11-21T10:04:30.120Z", expires_at: "2026-11-21T10:09:30.120Z",
};
const encoded = (change = {}) => Buffer.from(JSON.stringify({ ...context, ...change })).toString("base64url");
const login = { challenge: "c1", created_at: "2026-11-21T10:04:30.120Z", login: "success", report: { nonce: "n1", context: encoded() } };
const whole = { username: "alice", website: "shop", display_name: "The Shop", devices: [], factors: [], logins: [login] };

const answer = (body, status = 200) => ({ status, body, field: () => null });
const read = (change, website = "shop") => readAccount(answer({ ...whole, ...change }), website);
const odd = (error) => error instanceof CallFailure && error.status === 200;

async function phone(...answers) {
  const { privateKey, publicKey } = await makeKey();
  const own = { relay: "https://login.example.com", at: "https://phone.example.com", website: "shop", device: "d1", key: privateKey, jwk: await jwkOf(publicKey) };
  const asked = [];
  const carry = async (path, { method, fields, body }) => {
    asked.push({ path, method, fields, body: body === undefined ? undefined : JSON.parse(body) });
    const [status, object] = answers.shift() ?? [];
    if (status === undefined) throw new Error("gone");
    return { status, field: () => null, text: object === null ? "" : JSON.stringify(object) };
  };
  return { asked, line: new RelayLine(own, carry), source: new PhoneAccount(new Responder(own, new RelayLine(own, carry))) };
}

test("the fragment of a mail's link is told from others, and a damaged one is", () => {
  assert.deepEqual(readAccountLink("account=aa.bb_-.cc"), { link: "aa.bb_-.cc" });
  for (const text of ["", "a.b", "a.b.c.d", "a..c", "a.b.c ", "a.b.c&x=1", "<img>", `${"a".repeat(4096)}.b.c`]) {
    assert.deepEqual(readAccountLink(`account=${text}`), { link: null }, text);
  }
  for (const text of ["", "open=c1", "accounts=a.b.c", "relay=x&account=a.b.c"]) assert.equal(readAccountLink(text), null, text);
});

test("an account without its names or lists, or at another website, is not shown", () => {
  assert.equal(read({}).displayName, "The Shop");
  assert.equal(read({ website: "bank" }, null).website, "bank");
  for (const change of [{ website: "bank" }, { username: 7 }, { display_name: "" }, { devices: null }, { factors: {} }, { logins: undefined }]) {
    assert.throws(() => read(change), odd, JSON.stringify(change));
  }
  assert.throws(() => readAccount(answer({ code: "route_not_found" }, 404), "shop"), (error) => error.status === 404);
});

test("entries of another form are left out, and odd values are no texts", () => {
  const found = read({
    devices: [null, {}, { device: "a b" }, { device: "d1", name: { toString: "x" }, platform: 7, state: "active", created_at: "soon", this: "yes" }],
    factors: [null, { kind: 7 }, { kind: "recovery", left: -1 }, { kind: "later", left: "7", address: ["a"] }],
    logins: [null, { ...login, challenge: "" }, { ...login, created_at: "soon" }, { ...login, login: 7 }, { ...login, service: 7, place: null, can_report: "yes" }],
  });
  assert.deepEqual(found.devices, [{ device: "d1", name: null, platform: null, state: "active", createdAt: null, seenAt: null, isThis: false }]);
  assert.deepEqual(found.factors.map(({ kind, left, address }) => [kind, left, address]), [["recovery", null, null], ["later", null, null]]);
  assert.deepEqual(found.logins.map(({ service, place, isReportable }) => [service, place, isReportable]), [[null, null, false]]);
  assert.equal(read({ logins: Array.from({ length: 60 }, (_, at) => ({ ...login, challenge: `c${at}` })) }).logins.length, 50);
});

test("a login can be reported only with a context that can be shown whole", () => {
  const reported = (report) => read({ logins: [{ ...login, report }] }).logins[0].question;
  assert.equal(reported(login.report).context.place, "Berlin, DE");
  for (const report of [
    undefined, {}, { nonce: "n1" }, { nonce: 7, context: encoded() }, { nonce: "n1", context: "=" }, { nonce: "n1", context: encoded({ website: "bank" }) },
    { nonce: "n1", context: encoded({ place: "a\u202eb" }) }, { nonce: "n1", context: encoded({ v: 2 }) },
  ]) assert.equal(reported(report), null, JSON.stringify(report));
});

const ended = (hours) => ({ ...whole, logins: [{ ...login, ended_at: new Date(Date.now() - hours * 3_600_000).toISOString() }] });

test("a report signs the bytes that were shown, once, and 409 counts as done for a day", async () => {
  const { asked, source } = await phone([200, ended(1)], [], [409, { code: "already_decided", login: "success" }]);
  const [found] = (await source.fetch()).logins;
  await assert.rejects(source.report(found), (error) => error.kind === "lost");
  assert.equal(await source.report(found), true);
  assert.deepEqual(asked.map(({ method, path }) => `${method} ${path}`), ["GET /account", "POST /failure", "POST /failure"]);
  assert.deepEqual(asked[1].body, asked[2].body);
  assert.ok(asked.every(({ fields }) => "dpop" in fields));
  const claims = JSON.parse(Buffer.from(asked[1].body.answer.split(".")[1], "base64url"));
  const digest = Buffer.from(await crypto.subtle.digest("SHA-256", Buffer.from(login.report.context, "base64url"))).toString("base64url");
  assert.deepEqual([claims.decision, claims.challenge, claims.nonce, claims.context, claims.uv], ["fraud", "c1", "n1", digest, "none"]);
  const result = async (status, hours = 1) => {
    const { source: other } = await phone([200, ended(hours)], [status, { code: "x", login: "failure" }]);
    return other.report((await other.fetch()).logins[0]);
  };
  assert.equal(await result(200), true);
  assert.equal(await result(404), false);
  assert.equal(await result(409), true);
  assert.equal(await result(409, 25), false);
  await assert.rejects(result(429), (error) => error.status === 429);
});

test("a page without a phone sends the link and no proof", async () => {
  const { asked, line } = await phone([200, { ...whole, logins: [{ ...login, report: undefined, can_report: true }] }], [204, null], [409, {}], [404, {}], [401, {}]);
  const source = new LinkedAccount("a.b.c", line);
  const [found] = (await source.fetch()).logins;
  assert.deepEqual([found.isReportable, found.question], [true, null]);
  assert.deepEqual([await source.report(found), await source.report(found), await source.report(found)], [true, false, false]);
  await assert.rejects(source.report(found), (error) => error.status === 401);
  assert.deepEqual(asked.slice(0, 2).map(({ path, body }) => [path, body]), [
    ["/account", { link: "a.b.c" }], ["/account/report", { link: "a.b.c", challenge: "c1" }]]);
  assert.ok(asked.every(({ fields }) => !("dpop" in fields)));
});

test("a lost phone is removed by a code of the relay's form, without a proof", async () => {
  for (const text of ["A".repeat(19), "A".repeat(21), `${"A".repeat(19)} `, `${"A".repeat(19)}ä`, ""]) assert.ok(!isRevocationCode(text), text);
  assert.ok(isRevocationCode("Abcdefghij-_12345678"));
  const { asked, line } = await phone([204, null], [429, { code: "limited" }]);
  await revoke(line, "Abcdefghij-_12345678");
  assert.deepEqual([asked[0].path, asked[0].body, "dpop" in asked[0].fields], ["/revoke", { revocation_code: "Abcdefghij-_12345678" }, false]);
  await assert.rejects(revoke(line, "Abcdefghij-_12345678"), (error) => error.status === 429);
});
