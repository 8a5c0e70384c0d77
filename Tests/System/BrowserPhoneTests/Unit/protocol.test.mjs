// The app's statements and readers, against the examples of docs/phones/device-protocol.md.
import { test } from "node:test";
import assert from "node:assert/strict";
import { asset, example } from "./assets.mjs";

const signing = await import(asset("signing.js"));
const { decode, decodeObject, encode, utf8 } = await import(asset("bytes.js"));
const { readQuestion } = await import(asset("context.js"));
const { isPIN, isPUK, makePUK, pinKey } = await import(asset("pin.js"));

const json = (name) => JSON.parse(example(name));
const jwk = json("jwk");
const d = "ya-p2EW6dRZrXCFXZ7HWk05Qw9s26JsSe4piKxIPZyE";
const curve = { name: "ECDSA", namedCurve: "P-256" };
const key = await crypto.subtle.importKey("jwk", { ...jwk, d }, curve, false, ["sign"]);
const publicKey = await crypto.subtle.importKey("jwk", jwk, curve, false, ["verify"]);
const phone = {
  relay: "https://login.example.com:8080", website: "shop", token: json("enrol claims").id_token, jwk, key,
  pushToken: json("enrol claims").dev_token, device: json("decision header").kid,
};
const k = decode("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8");

/** Checks a JWS: the parts are those of the page, byte for byte, and the signature is right. */
async function isLike(jws, name) {
  const [header, claims, signature] = jws.split(".");
  assert.equal(`${header}.${claims}`, example(`${name} jws`).split(".").slice(0, 2).join("."), name);
  assert.deepEqual(decodeObject(claims), json(`${name} claims`));
  const algorithm = { name: "ECDSA", hash: "SHA-256" };
  assert.ok(await crypto.subtle.verify(algorithm, publicKey, decode(signature), utf8(`${header}.${claims}`)), name);
}

const now = (name) => json(`${name} claims`).iat * 1000 + 999;

test("the statements are those of the page", async () => {
  assert.equal(await signing.thumbprint(jwk), example("thumbprint"));
  await isLike(await signing.enrolment(phone, json("enrol claims").activation_code, now("enrol")), "enrol");
  await isLike(await signing.pushToken(phone, json("token claims").dev_token, now("token")), "token");
  const { iat: _, v: _v, aud: _aud, ...report } = json("status claims");
  await isLike(await signing.status(phone, report, now("status")), "status");
  const { change, version, pin } = json("pin claims");
  await isLike(await signing.pinChange(phone, { change, version, pin }, now("pin")), "pin");
  const { jti, htm, htu, nonce } = json("dpop claims");
  await isLike(await signing.dpop(phone, htm, htu, nonce, now("dpop"), jti), "dpop");
  await isLike(await signing.secretRequest({ ...phone, agreement: json("secret claims").agreement }, now("secret")), "secret");
});

test("the binding is that of the page, with every byte", async () => {
  assert.equal(await signing.binding(phone, await signing.holdWebsiteKey(k)), example("binding jws"));
});

test("a phone in a browser names its app and its passkey in both statements", async () => {
  const passkey = { rp: "app.example.com", id: "AAAA", jwk };
  // Members that an older version of the app stored do not go out.
  const web = { ...phone, app: "https://app.example.com", passkey: { origin: "https://app.example.com", ...passkey } };
  const statements = [await signing.enrolment(web, "code", 0), await signing.binding(web, await signing.holdWebsiteKey(k))];
  for (const statement of statements) {
    const claims = decodeObject(statement.split(".")[1]);
    assert.equal(claims.app, "https://app.example.com");
    assert.deepEqual(claims.webauthn, passkey);
  }
  const plain = decodeObject((await signing.enrolment({ ...web, passkey: null }, "code", 0)).split(".")[1]);
  assert.equal(plain.app, "https://app.example.com");
  assert.ok(!("webauthn" in plain));
  const native = decodeObject((await signing.enrolment({ ...web, app: null }, "code", 0)).split(".")[1]);
  assert.ok(!("webauthn" in native) && !("app" in native));
});

test("the decision covers the bytes that the relay listed", async () => {
  const { challenge, nonce, number, decision: word, uv } = json("decision claims");
  const entry = { challenge, nonce, context: example("context base64url"), expires_at: "2026-11-21T10:09:30.120Z" };
  const question = readQuestion(entry, "shop", Date.parse("2026-11-21T10:04:30.120Z"));
  assert.equal(question.timeLeft, 300_000);
  assert.deepEqual(question.context.details, [{ label: "amount", value: "12.00 EUR" }, { label: "to", value: "Zoë Müller" }]);
  await isLike(await signing.decision(phone, question, { word, number, uv }, now("decision")), "decision");
});

test("the place stands in a decision only if the website asked for it", async () => {
  const question = { challenge: "c1", nonce: "n", bytes: new Uint8Array(2), context: { request: null } };
  const signed = async (more, place) =>
    decodeObject((await signing.decision(phone, { ...question, ...more }, { word: "approve", place }, 0)).split(".")[1]).place;
  assert.equal(await signed({ asksPlace: true }, "52.5,13.4"), "52.5,13.4");
  assert.equal(await signed({ asksPlace: false }, "52.5,13.4"), undefined);
  assert.equal(await signed({ asksPlace: true }, null), undefined);
});

test("the keys of PIN and PUK are those of the page", async () => {
  const pin = await pinKey("2580", k, "pin");
  assert.deepEqual(pin.jwk, json("pin jwk"));
  assert.deepEqual((await pinKey("314159265358", k, "puk")).jwk, json("puk jwk"));
  const imported = await crypto.subtle.importKey("jwk", pin.jwk, curve, false, ["verify"]);
  const algorithm = { name: "ECDSA", hash: "SHA-256" };
  const input = example("pin jws").split(".").slice(0, 2).join(".");
  assert.ok(await crypto.subtle.verify(algorithm, imported, decode(example("pin signature")), utf8(input)));
  assert.ok(await crypto.subtle.verify(algorithm, imported, decode(await pin.sign(example("pin jws"))), utf8(input)));
});

test("a PIN has 4 to 12 digits, and a PUK 12 random ones", () => {
  for (const text of ["1234", "123456789012"]) assert.ok(isPIN(text));
  for (const text of ["123", "1234567890123", "12a4", "１２３４", ""]) assert.ok(!isPIN(text), text);
  const made = new Set(Array.from({ length: 50 }, makePUK));
  assert.equal(made.size, 50);
  assert.ok([...made].every(isPUK));
});

test("base64url has one encoding for each value", () => {
  assert.equal(encode(new Uint8Array([251, 255])), "-_8");
  for (const text of ["-_9", "-_8=", "a", "+/8", null]) assert.equal(decode(text), null);
});
