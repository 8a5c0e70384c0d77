// The credential that checks the owner, with an authenticator that follows WebAuthn or violates it.
import { test } from "node:test";
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { asset } from "./assets.mjs";

const { assertOwner, canCheckOwner, makePasskey } = await import(asset("passkey.js"));

const location = { hostname: "app.example.com", origin: "https://app.example.com" };
const pair = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign"]);
const spki = await crypto.subtle.exportKey("spki", pair.publicKey);

/** An authenticator that keeps what it was asked, and answers with the given values. */
function authenticator({ id = new Uint8Array([1, 2, 3]), algorithm = -7, key = spki, flags = 5 } = {}) {
  const asked = [];
  const data = new Uint8Array(37);
  data[32] = flags;
  return {
    asked,
    create: async ({ publicKey }) => {
      asked.push(publicKey);
      return { rawId: id.buffer, response: { getPublicKeyAlgorithm: () => algorithm, getPublicKey: () => key } };
    },
    get: async ({ publicKey }) => {
      asked.push(publicKey);
      return { response: { authenticatorData: data.buffer, clientDataJSON: new Uint8Array([123]).buffer, signature: new Uint8Array([9]).buffer } };
    },
  };
}

test("a passkey has the members of the claim and no others, and demands a check of its owner", async () => {
  const credentials = authenticator();
  const passkey = await makePasskey("shop", { location, credentials });
  const { crv, kty, x, y } = await crypto.subtle.exportKey("jwk", pair.publicKey);
  assert.deepEqual(passkey, { rp: "app.example.com", id: "AQID", jwk: { crv, kty, x, y } });
  const [asked] = credentials.asked;
  assert.deepEqual(asked.pubKeyCredParams, [{ type: "public-key", alg: -7 }]);
  assert.deepEqual([asked.rp.id, asked.authenticatorSelection.userVerification], ["app.example.com", "required"]);
});

test("a key of another kind, and an id that the protocol does not take, are refused", async () => {
  for (const change of [{ algorithm: -257 }, { key: null }, { id: new Uint8Array(193) }]) {
    await assert.rejects(makePasskey("shop", { location, credentials: authenticator(change) }), undefined, JSON.stringify(change));
  }
  assert.equal((await makePasskey("shop", { location, credentials: authenticator({ id: new Uint8Array(192) }) })).id.length, 256);
});

test("an assertion is about what the phone has signed, and counts only if the owner was verified", async () => {
  const passkey = { rp: "app.example.com", id: "AQID", jwk: {} };
  const credentials = authenticator();
  const found = await assertOwner(passkey, "head.claims.signature", { credentials });
  assert.deepEqual(Object.keys(found), ["authenticator_data", "client_data", "signature"]);
  assert.deepEqual([found.client_data, found.signature], ["ew", "CQ"]);
  const [asked] = credentials.asked;
  assert.deepEqual(Buffer.from(asked.challenge), createHash("sha256").update("head.claims").digest());
  assert.deepEqual([asked.rpId, [...asked.allowCredentials[0].id], asked.userVerification], ["app.example.com", [1, 2, 3], "required"]);
  for (const flags of [0, 1, 4]) {
    await assert.rejects(assertOwner(passkey, "a.b.c", { credentials: authenticator({ flags }) }), undefined, String(flags));
  }
});

test("a browser without WebAuthn checks no owner", async () => {
  const says = (answer) => canCheckOwner({ PublicKeyCredential: { isUserVerifyingPlatformAuthenticatorAvailable: async () => answer } });
  assert.deepEqual([await says(true), await says(false), await canCheckOwner({})], [true, false, false]);
});
