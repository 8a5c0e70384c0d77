// The page's phone with a scripted relay that follows docs/phones/device-protocol.md or violates
// it.
import { test } from "node:test";
import assert from "node:assert/strict";
import { webcrypto } from "node:crypto";

globalThis.crypto ??= webcrypto;
const { CallFailure, RelayLine } = await import("./calls.js");
const { Enroller, Responder, beginEnrolment, isFor } = await import("./device.js");

const activation = {
  relay: "https://login.example.com:8080", website: "shop", token: "ab12", code: "f91r8F9C",
  pin: "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", k: new Uint8Array(32).fill(7),
};
const claims = (jws) => JSON.parse(Buffer.from(jws.split(".")[1], "base64url").toString());

/** Answers in turn: [status, body, fields], or an error to throw; keeps what was asked. */
function relay(...answers) {
  const asked = [];
  const carry = async (path, { method, fields, body }) => {
    asked.push({ path, method, fields, body: JSON.parse(body) });
    const next = answers.shift();
    const answer = typeof next === "function" ? next(asked.at(-1)) : next;
    if (answer instanceof Error) throw answer;
    const [status, object, more = {}] = answer;
    return { status, field: (name) => more[name] ?? null, text: object === null ? "" : JSON.stringify(object) };
  };
  return { asked, carry };
}

/** Only what the page looks for: the key, somewhere in the bytes. */
const certificate = ({ x, y }) => {
  const bytes = Buffer.concat([Buffer.of(0x30, 0x04), ...[x, y].map((one) => Buffer.from(one, "base64url"))]);
  return `-----BEGIN CERTIFICATE-----\n${bytes.toString("base64")}\n-----END CERTIFICATE-----\n`;
};

const begun = () => beginEnrolment(activation, { name: "mine", pushToken: "ab".repeat(32) });
const bound = async () => ({ ...(await begun()), state: "bound", device: "d1" });
const refused = (status) => (error) => error instanceof CallFailure && error.kind === "refused" && error.status === status;

test("the key cannot be read, and code and k go when it is bound", async () => {
  const phone = await begun();
  assert.equal(phone.key.extractable, false);
  assert.equal(phone.websiteKey.extractable, false);
  assert.ok(isFor(phone, activation) && !isFor(phone, { ...activation, code: "another" }));
  const { asked, carry } = relay([200, {
    login: "verified", device: "d1", certificate: certificate(phone.jwk), revocation_code: "r".repeat(20),
  }]);
  const outcome = await new Enroller(phone, new RelayLine(phone, carry)).attempt();
  assert.equal(outcome.revocationCode, "r".repeat(20));
  assert.equal(outcome.phone.device, "d1");
  assert.ok(!("code" in outcome.phone) && !("websiteKey" in outcome.phone));
  const [{ path, fields, body }] = asked;
  assert.equal(path, "/verify");
  assert.ok(!("dpop" in fields));
  assert.deepEqual(
    Object.keys(body).sort(),
    ["activation_code", "binding", "dev_token", "environment", "id_token", "name", "platform", "proof"]);
  assert.equal(claims(body.proof).dev_token, body.dev_token);
  assert.deepEqual(claims(body.binding).jwk, phone.jwk);
  // The key for secrets is another one, which cannot be read either, and both statements name it.
  assert.equal(phone.agreementKey.extractable, false);
  assert.notDeepEqual(phone.agreement, phone.jwk);
  for (const statement of [body.proof, body.binding]) assert.deepEqual(claims(statement).agreement, phone.agreement);
});

test("it sends the very same again until somebody has approved", async () => {
  const phone = await begun();
  const { asked, carry } = relay(
    [200, { login: "wait", device: "d1", number: "07" }], new Error("gone"),
    [200, { login: "verified", device: "d1", certificate: certificate(phone.jwk), revocation_code: "r" }]);
  const enroller = new Enroller(phone, new RelayLine(phone, carry));
  assert.deepEqual(await enroller.attempt(), { login: "wait", device: "d1", number: "07" });
  await assert.rejects(enroller.attempt(), (error) => error.kind === "lost" && error.mayPass);
  assert.equal((await enroller.attempt()).login, "verified");
  assert.deepEqual(asked[0], asked[1]);
  assert.deepEqual(asked[0], asked[2]);
});

test("it does not take a certificate for another key, nor an odd device", async () => {
  const [phone, other] = [await begun(), await begun()];
  const verified = { login: "verified", device: "d1", certificate: certificate(phone.jwk), revocation_code: "r" };
  for (const change of [
    { certificate: certificate(other.jwk) }, { certificate: "none" }, { device: "d 1" },
    { device: undefined }, { revocation_code: "" }, { login: "yes" }, { login: "wait", number: "seven" },
  ]) {
    const line = new RelayLine(phone, relay([200, { ...verified, ...change }]).carry);
    await assert.rejects(new Enroller(phone, line).attempt(), refused(200), JSON.stringify(change));
  }
});

test("it asks what became of a key whose answer was lost", async () => {
  const phone = await begun();
  const nonce = { "dpop-nonce": "n1", "www-authenticate": 'DPoP error="use_dpop_nonce"' };
  const none = { "dpop-nonce": "n1", "www-authenticate": 'DPoP error="invalid_dpop_proof"' };
  const tell = async (...answers) => new Enroller(phone, new RelayLine(phone, relay(...answers).carry)).boundUnheard();
  assert.equal((await tell([401, {}, nonce], [200, { device: "d7", certificate: certificate(phone.jwk) }])).device, "d7");
  assert.equal(await tell([401, {}, nonce], [401, {}, none]), null);
  // A second refused nonce does not show that the key is unknown, and neither does an unavailable
  // relay.
  await assert.rejects(tell([401, {}, nonce], [401, {}, { ...nonce, "dpop-nonce": "n2" }]), refused(401));
  await assert.rejects(tell([503, {}]), refused(503));
});

test("a proof is made for each request, and again, once, with a nonce that it should have had", async () => {
  const phone = await bound();
  const page = [200, { pending: [], time: "2026-11-21T10:01:00.000Z" }];
  const { asked, carry } = relay(
    [401, {}, { "dpop-nonce": "n1" }], page, page, [401, {}, { "dpop-nonce": "n2" }], [401, {}, { "dpop-nonce": "n3" }],
    [401, {}, { "dpop-nonce": "n3" }]);
  const responder = new Responder(phone, new RelayLine(phone, carry, () => 1795255487999));
  await responder.pending();
  await responder.pending();
  await assert.rejects(responder.pending(), refused(401));
  await assert.rejects(responder.pending(), refused(401));
  const proofs = asked.map(({ fields }) => claims(fields.dpop));
  assert.deepEqual(proofs.map(({ nonce }) => nonce), [undefined, "n1", "n1", "n1", "n2", "n3"]);
  assert.equal(new Set(proofs.map(({ jti }) => jti)).size, proofs.length);
  assert.ok(proofs.every(({ htm, htu, iat }) =>
    htm === "POST" && htu === "https://login.example.com:8080/pending" && iat === 1795255487));
});

test("it shows what it can, names what it knows, and asks for no more than sixteen", async () => {
  const phone = await bound();
  const context = {
    v: 1, website: "shop", display_name: "The Shop", username: "alice", number_digits: 0,
    created_at: "2026-11-21T10:00:00.000Z", expires_at: "2026-11-21T10:05:00.000Z",
  };
  const entry = (challenge, change) => ({
    challenge, nonce: "n", context: Buffer.from(JSON.stringify({ ...context, ...change })).toString("base64url"),
    expires_at: "2026-11-21T10:05:00.000Z",
  });
  const { asked, carry } = relay([200, {
    pending: [entry("c1"), entry("c2", { website: "bank" }), entry("c3", { v: 2 }), {}], time: "2026-11-21T10:01:00.000Z",
  }]);
  const known = Array.from({ length: 20 }, (_, at) => `c${at}`);
  const found = await new Responder(phone, new RelayLine(phone, carry)).pending({ seconds: 15, known });
  assert.deepEqual(found.questions.map(({ challenge, timeLeft }) => [challenge, timeLeft]), [["c1", 240_000]]);
  assert.deepEqual(found.refused.map(({ challenge }) => challenge), ["c2", "c3", null]);
  assert.deepEqual(found.challenges, ["c1", "c2", "c3"]);
  assert.deepEqual([asked[0].fields.prefer, asked[0].body.known.length], ["wait=15", 16]);
});

test("an answer is signed once, and may be sent twice", async () => {
  const phone = await bound();
  const question = { challenge: "c1", nonce: "n", bytes: new Uint8Array([123, 125]), context: { request: null } };
  const { asked, carry } = relay(new Error("gone"), [200, { login: "failure" }], [409, { code: "already_decided", login: "failure" }]);
  const responder = new Responder(phone, new RelayLine(phone, carry));
  const signed = await responder.sign(question, { word: "fraud", number: "12" });
  await assert.rejects(responder.send(signed), (error) => error.kind === "lost");
  assert.equal(await responder.send(signed), "failure");
  await assert.rejects(responder.send(signed), (error) => refused(409)(error) && error.body.login === "failure");
  assert.ok(asked.every(({ path, body }) => path === "/failure" && body.answer === asked[0].body.answer));
  assert.deepEqual(Object.keys(claims(asked[0].body.answer)), ["v", "aud", "challenge", "decision", "context", "nonce", "uv", "iat"]);
});

test("it is unbound by DELETE, and says what it was refused", async () => {
  const phone = await bound();
  const { asked, carry } = relay([204, null], [429, { code: "limited", detail: "slowly" }, { "retry-after": "7" }]);
  const responder = new Responder(phone, new RelayLine(phone, carry));
  await responder.unbind();
  assert.deepEqual([asked[0].method, claims(asked[0].fields.dpop).htm], ["DELETE", "DELETE"]);
  await assert.rejects(responder.rename("x"), (error) => error.retryAfter === 7 && error.code === "limited" && error.mayPass);
});
