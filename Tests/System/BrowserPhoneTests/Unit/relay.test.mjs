// The app's phone with a scripted relay that follows docs/phones/device-protocol.md or violates it.
import { test } from "node:test";
import assert from "node:assert/strict";
import { asset } from "./assets.mjs";

const { CallFailure, RelayLine } = await import(asset("calls.js"));
const { askOffset, isFarFrom } = await import(asset("clock.js"));
const { Responder } = await import(asset("device.js"));
const { Enroller, beginEnrolment, isFor } = await import(asset("enrolment.js"));
const { Mailbox } = await import(asset("mailbox.js"));

const activation = {
  relay: "https://login.example.com:8080", at: "https://phone.example.com", website: "shop", token: "ab12", code: "f91r8F9C",
  pin: "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", k: new Uint8Array(32).fill(7),
};
const aud = "https://login.example.com:8080#shop";
const claims = (jws) => JSON.parse(Buffer.from(jws.split(".")[1], "base64url").toString());
const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
const statement = (typ, content) => `${part({ typ })}.${part({ v: 1, ...content })}.AAAA`;

/**
 * Answers in turn: [status, body, fields], an error to throw, or a function; keeps what was asked.
 */
function relay(...answers) {
  const asked = [];
  const carry = async (path, { method, fields, body }) => {
    asked.push({ path, method, fields, body: body === undefined ? undefined : JSON.parse(body) });
    const next = answers.shift();
    const answer = typeof next === "function" ? next(asked.at(-1)) : next;
    if (answer instanceof Error) throw answer;
    const [status, object, more = {}] = answer;
    return { status, field: (name) => more[name] ?? null, text: object === null ? "" : JSON.stringify(object) };
  };
  return { asked, carry };
}

/** Only what the app looks for: the key, somewhere in the bytes. */
const certificate = ({ x, y }) => {
  const bytes = Buffer.concat([Buffer.of(0x30, 0x04), ...[x, y].map((one) => Buffer.from(one, "base64url"))]);
  return `-----BEGIN CERTIFICATE-----\n${bytes.toString("base64")}\n-----END CERTIFICATE-----\n`;
};

const begun = () => beginEnrolment(activation, { name: "mine", app: "https://app.example.org" });
const bound = async () => ({ ...(await begun()), state: "bound", device: "d1" });
const lineTo = (phone, answers, options) => {
  const { asked, carry } = relay(...answers);
  return { asked, line: new RelayLine(phone, carry, options) };
};
const refused = (status) => (error) => error instanceof CallFailure && error.kind === "refused" && error.status === status;

test("the keys cannot be read, and code and k go when the phone is bound", async () => {
  const phone = await begun();
  for (const one of ["key", "agreementKey", "websiteKey"]) assert.equal(phone[one].extractable, false);
  assert.ok(isFor(phone, activation) && !isFor(phone, { ...activation, code: "another" }));
  const { asked, line } = lineTo(phone, [[200, { login: "verified", device: "d1", certificate: certificate(phone.jwk), revocation_code: "r".repeat(20) }]]);
  const outcome = await new Enroller(phone, line).attempt();
  assert.deepEqual([outcome.revocationCode, outcome.phone.device], ["r".repeat(20), "d1"]);
  assert.ok(!("code" in outcome.phone) && !("websiteKey" in outcome.phone));
  const [{ path, fields, body }] = asked;
  assert.equal(path, "/verify");
  assert.ok(!("dpop" in fields));
  assert.deepEqual(Object.keys(body).sort(), ["activation_code", "binding", "id_token", "name", "platform", "proof"]);
  assert.equal(body.platform, "web");
  for (const jws of [body.proof, body.binding]) {
    assert.deepEqual([claims(jws).aud, claims(jws).app, claims(jws).agreement], [aud, "https://app.example.org", phone.agreement]);
  }
  assert.notDeepEqual(phone.agreement, phone.jwk);
});

test("the very same is sent again until somebody has approved", async () => {
  const phone = await begun();
  const { asked, line } = lineTo(phone, [
    [200, { login: "wait", device: "d1", number: "07" }], new Error("gone"),
    [200, { login: "verified", device: "d1", revocation_code: "r" }]]);
  const enroller = new Enroller(phone, line);
  assert.deepEqual(await enroller.attempt(), { login: "wait", device: "d1", number: "07" });
  await assert.rejects(enroller.attempt(), (error) => error.kind === "lost" && error.mayPass);
  assert.equal((await enroller.attempt()).login, "verified");
  assert.deepEqual(asked[0], asked[1]);
  assert.deepEqual(asked[0], asked[2]);
});

test("a certificate for another key, and an odd device, are not taken", async () => {
  const [phone, other] = [await begun(), await begun()];
  const verified = { login: "verified", device: "d1", certificate: certificate(phone.jwk), revocation_code: "r" };
  for (const change of [
    { certificate: certificate(other.jwk) }, { certificate: "none" }, { device: "d 1" },
    { device: undefined }, { revocation_code: "" }, { login: "yes" }, { login: "wait", number: "seven" },
  ]) {
    const { line } = lineTo(phone, [[200, { ...verified, ...change }]]);
    await assert.rejects(new Enroller(phone, line).attempt(), refused(200), JSON.stringify(change));
  }
});

test("a key whose answer was lost is looked for before it is deleted", async () => {
  const phone = await begun();
  const nonce = { "dpop-nonce": "n1", "www-authenticate": 'DPoP error="use_dpop_nonce"' };
  const none = { "dpop-nonce": "n1", "www-authenticate": 'DPoP error="invalid_dpop_proof"' };
  const tell = async (...answers) => new Enroller(phone, lineTo(phone, answers).line).boundUnheard();
  assert.equal((await tell([401, {}, nonce], [200, { device: "d7", certificate: certificate(phone.jwk) }])).device, "d7");
  assert.equal(await tell([401, {}, nonce], [401, {}, none]), null);
  await assert.rejects(tell([401, {}, nonce], [401, {}, { ...nonce, "dpop-nonce": "n2" }]), refused(401));
  await assert.rejects(tell([503, {}]), refused(503));
});

test("a proof names the origin of the routes, and takes the newest nonce", async () => {
  const phone = await bound();
  const page = [200, { pending: [], time: "2026-11-21T10:01:00.000Z" }];
  const { asked, line } = lineTo(phone, [
    [401, {}, { "dpop-nonce": "n1" }], page, page, [401, {}, { "dpop-nonce": "n2" }], [401, {}, { "dpop-nonce": "n3" }],
    [401, {}, { "dpop-nonce": "n3" }]], { now: () => 1795255487999 });
  const responder = new Responder(phone, line);
  await responder.pending();
  await responder.pending();
  await assert.rejects(responder.pending(), refused(401));
  await assert.rejects(responder.pending(), refused(401));
  const proofs = asked.map(({ fields }) => claims(fields.dpop));
  assert.deepEqual(proofs.map(({ nonce }) => nonce), [undefined, "n1", "n1", "n1", "n2", "n3"]);
  assert.equal(new Set(proofs.map(({ jti }) => jti)).size, proofs.length);
  assert.ok(proofs.every(({ htm, htu, iat }) => htm === "POST" && htu === "https://phone.example.com/pending" && iat === 1795255487));
});

test("an answer is signed once, may be sent twice, and has the proofs of an approval only", async () => {
  const phone = await bound();
  const question = { challenge: "c1", nonce: "n", bytes: new Uint8Array([123, 125]), context: { request: null } };
  const { asked, line } = lineTo(phone, [new Error("gone"), [200, { login: "failure" }], [409, { code: "already_decided", login: "failure" }]]);
  const responder = new Responder(phone, line);
  const proofs = { owner: async () => ({ signature: "s" }), pin: async () => "p" };
  const signed = await responder.sign(question, { word: "fraud", number: "12" }, proofs);
  await assert.rejects(responder.send(signed), (error) => error.kind === "lost");
  assert.equal(await responder.send(signed), "failure");
  await assert.rejects(responder.send(signed), (error) => refused(409)(error) && error.body.login === "failure");
  assert.ok(asked.every(({ path, body }) => path === "/failure" && body.answer === asked[0].body.answer && Object.keys(body).length === 2));
  assert.deepEqual(Object.keys(claims(signed.body.answer)), ["v", "aud", "challenge", "decision", "context", "nonce", "uv", "iat"]);
  const approved = await responder.sign(question, { word: "approve", number: "12", uv: "passcode", uvAge: 0 }, proofs);
  assert.deepEqual([approved.path, approved.body.webauthn, approved.body.pin_signature], ["/success", { signature: "s" }, "p"]);
  assert.deepEqual([claims(approved.body.answer).uv, claims(approved.body.answer).uv_age], ["passcode", 0]);
});

test("a goodbye ends only with a farewell for this phone and this request", async () => {
  const phone = await bound();
  const told = (change = {}) => ({ body }) => {
    const { nonce, leaves, aud: named } = claims(body.goodbye);
    assert.deepEqual([leaves, named], [true, aud]);
    return [200, { device: "d1", farewell: statement("twoefay-farewell+jwt", { aud, device: "d1", thumbprint: phone.id, nonce, by: "phone", ...change }) }];
  };
  const leave = (answer) => new Responder(phone, lineTo(phone, [answer]).line).goodbye(true);
  assert.deepEqual(await leave(told()), { isBound: false, by: "phone" });
  for (const change of [{ nonce: "x" }, { device: "d2" }, { thumbprint: "x" }, { aud: `${aud}x` }, { v: 2 }]) {
    await assert.rejects(leave(told(change)), refused(200), JSON.stringify(change));
  }
  await assert.rejects(leave([200, { device: "d1", bound: true }]), refused(200));
  await assert.rejects(leave([401, {}]), refused(401));
  const asking = new Responder(phone, lineTo(phone, [[200, { device: "d1", bound: true }]]).line);
  assert.deepEqual(await asking.goodbye(false), { isBound: true });
});

test("the relay's time must answer this request, and soon", async () => {
  const phone = await bound();
  const ask = (change = {}, took = 100) => {
    let ticks = 0;
    const fetched = async (path, { fields }) => {
      ticks += took;
      return { status: 200, body: { time: statement("twoefay-time+jwt", { aud: phone.relay, nonce: fields.nonce, time: "2026-11-21T10:04:47.250Z", ...change }) } };
    };
    return askOffset(phone, fetched, { now: () => Date.parse("2026-11-21T09:04:47.200Z"), ticks: () => ticks });
  };
  assert.equal(await ask(), 3_600_000);
  for (const change of [{ aud: aud }, { nonce: "x" }, { time: "now" }, { v: 2 }]) await assert.rejects(ask(change), undefined, JSON.stringify(change));
  await assert.rejects(ask({}, 10_001));
  assert.ok(isFarFrom("Sat, 21 Nov 2026 10:00:00 GMT", Date.parse("2026-11-21T11:00:01Z")));
  assert.ok(!isFarFrom("Sat, 21 Nov 2026 10:00:00 GMT", Date.parse("2026-11-21T10:59:59Z")) && !isFarFrom(null, 0));
});

test("a notice is for this phone, and has no hidden characters", async () => {
  const phone = await bound();
  const content = { aud, id_token: "ab12", message: "m1", from: "operator", title: "Hello", text: "one\ntwo", created_at: "2026-11-21T10:04:30.120Z" };
  const read = (change) => new Mailbox(phone, lineTo(phone, [[200, { statement: statement("twoefay-message+jwt", { ...content, ...change }) }]]).line).read("m1");
  assert.deepEqual(await read({}), { from: "operator", title: "Hello", text: "one\ntwo", createdAt: content.created_at });
  for (const change of [{ aud: "x" }, { id_token: "x" }, { message: "m2" }, { from: "friend" }, { title: "a\u202eb" }, { text: "a\u200bb" }, { text: "a\tb" }, { v: 2 }]) {
    await assert.rejects(read(change), refused(200), JSON.stringify(change));
  }
  assert.equal(await new Mailbox(phone, lineTo(phone, [[404, { code: "not_found" }]]).line).read("m1"), null);
});

test("the number of notices is heard when it changes, and a refusal says nothing about it", async () => {
  const phone = await bound();
  const heard = [];
  const page = { pending: [], time: "2026-11-21T10:01:00.000Z" };
  const { line } = lineTo(phone, [
    [200, page, { "x-messagecount": "2" }], [200, page, { "x-messagecount": "2" }], [401, {}], [200, page]], { heard: (count) => heard.push(count) });
  const responder = new Responder(phone, line);
  await responder.pending();
  await responder.pending();
  await assert.rejects(responder.pending(), refused(401));
  await responder.pending();
  assert.deepEqual(heard, [2, 0]);
});

test("a report that the relay did not keep is sent again, a second later", async () => {
  const phone = await bound();
  const { asked, line } = lineTo(phone, [
    [200, { report: { reported_at: "2026-11-21T10:00:05.000Z" } }], [200, { report: { reported_at: "2026-11-21T10:00:06.000Z" } }]],
  { now: () => Date.parse("2026-11-21T10:00:00.500Z") });
  await new Responder(phone, line).report({ app_version: "1.2.3" });
  assert.deepEqual(asked.map(({ body }) => claims(body.status).iat), ["2026-11-21T10:00:00Z", "2026-11-21T10:00:06Z"].map((one) => Date.parse(one) / 1000));
});
