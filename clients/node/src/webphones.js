/**
 * Web phones: their origin, their credential, and their owner's proof by WebAuthn.
 *
 * A web phone is a phone whose app is a page in a browser. Its pinned record is the phone's JWK with
 * two further members: `app`, the origin of the page, and `webauthn`, the credential of its owner.
 * Such a page can claim any verification of its owner. So only the assertion of the browser proves
 * one: a signature by the credential, whose challenge is the hash of the receipt.
 */

import { createHash } from "node:crypto";
import { isObject, readObject, Unreadable } from "./jsontext.js";
import { decode, encode, isSignature, publicJWK } from "./jws.js";

const ORIGIN = /^https:\/\/([a-z0-9.-]+)(:[0-9]{1,5})?$/;
const MOST_CHARACTERS = 128;
const MOST_OF_ID = 256;
const PRESENT = 0x01;
const VERIFIED = 0x04;

/** The host of a page's origin, without its port; null if the value is no origin. */
export function pageHost(origin) {
  if (typeof origin !== "string" || origin.length > MOST_CHARACTERS) return null;
  return ORIGIN.exec(origin)?.[1] ?? null;
}

/** Compares the hosts of two origins. Ports, and a dot at the end, lead to the same server. */
export function isSameHost(origin, other) {
  return hostOf(origin) === hostOf(other);
}

function hostOf(origin) {
  // Not by `URL`, which throws for a port above 65535.
  return origin.replace(/^https:\/\//, "").replace(/:[0-9]*$/, "").replace(/\.+$/, "").toLowerCase();
}

/**
 * The further members of a web phone's record, from the claims of its binding; none for a native
 * phone. Throws Unreadable unless they are in the right form.
 */
export function webMembers(claims) {
  const has = (name) => Object.hasOwn(claims, name);
  if (!has("app")) {
    if (has("webauthn")) throw new Unreadable("a credential without a page");
    return {};
  }
  const { app, webauthn } = claims;
  const host = pageHost(app);
  if (host === null) throw new Unreadable("the page has no origin");
  return has("webauthn") ? { app, webauthn: credential(webauthn, host) } : { app };
}

function credential(value, host) {
  if (!isObject(value)) throw new Unreadable("the credential is no object");
  const { rp, id, jwk } = value;
  if (typeof rp !== "string" || rp === "" || (host !== rp && !host.endsWith(`.${rp}`))) {
    throw new Unreadable("the relying party is not of the page's host");
  }
  bytesOf(id, 1, MOST_OF_ID * 3 / 4);
  return { rp, id, jwk: publicJWK(jwk) };
}

/** The bytes of a text in base64url. Throws Unreadable if they are too few or too many. */
function bytesOf(text, least, most) {
  if (typeof text !== "string") throw new Unreadable("not a text");
  const bytes = decode(text);
  if (bytes.length < least || bytes.length > most) throw new Unreadable("another length");
  return bytes;
}

/**
 * Whether the assertion proves that the browser has verified the web phone's owner for exactly this
 * receipt (WebAuthn Level 2, 7.2). The counter is ignored: synced credentials have none.
 */
export function verifiesOwner({ app, webauthn }, receipt, assertion) {
  if (webauthn === undefined || !isObject(assertion)) return false;
  let data, client, signature, said;
  try {
    data = bytesOf(assertion.authenticator_data, 37, 1024);
    client = bytesOf(assertion.client_data, 1, 4096);
    signature = bytesOf(assertion.signature, 1, 256);
    said = readObject(client);
  } catch (error) {
    if (error instanceof Unreadable) return false;
    throw error;
  }
  const challenge = encode(sha256(receipt.slice(0, receipt.lastIndexOf("."))));
  return said.type === "webauthn.get"
    && said.challenge === challenge
    && said.origin === app
    && (!Object.hasOwn(said, "crossOrigin") || said.crossOrigin === false)
    && !Object.hasOwn(said, "topOrigin")
    && data.subarray(0, 32).equals(sha256(webauthn.rp))
    && (data[32] & PRESENT) !== 0
    && (data[32] & VERIFIED) !== 0
    && isSignature(signature, Buffer.concat([data, sha256(client)]), webauthn.jwk);
}

function sha256(data) {
  return createHash("sha256").update(data).digest();
}
