/** Compact JWS with one fixed algorithm. The header never chooses it, or `none` would get in. */

import { createHmac, createPublicKey, timingSafeEqual, verify } from "node:crypto";
import { isObject, readObject, Unreadable } from "./jsontext.js";

export function encode(bytes) {
  return Buffer.from(bytes).toString("base64url");
}

/** Decodes base64url without padding. Each value has exactly one text; others are unreadable. */
export function decode(text) {
  const bytes = Buffer.from(text, "base64url");
  if (encode(bytes) !== text) throw new Unreadable("not base64url");
  return bytes;
}

/** Parses a JWS. Read no claim before `isSignedBy` or `isMadeWith` has returned true. */
export function parse(token, algorithm) {
  const parts = token.split(".", 4);
  if (parts.length !== 3) throw new Unreadable("not a compact JWS");
  const [head, payload, signature] = parts.map(decode);
  const header = readObject(head);
  if (header.alg !== algorithm) throw new Unreadable("another algorithm");
  if (Object.hasOwn(header, "crit")) throw new Unreadable("an unknown extension is demanded");
  if (signature.length === 0 || (algorithm === "ES256" && signature.length !== 64)) {
    throw new Unreadable("the signature has another length");
  }
  return { header, payload, signature, signed: Buffer.from(`${parts[0]}.${parts[1]}`) };
}

export function isSignedBy(jws, jwk) {
  const key = { key: publicKey(jwk), dsaEncoding: "ieee-p1363" };
  return verify("sha256", jws.signed, key, jws.signature);
}

/** Whether this is a signature in DER of these bytes. */
export function isSignature(signature, data, jwk) {
  return verify("sha256", data, { key: publicKey(jwk), dsaEncoding: "der" }, signature);
}

export function isMadeWith(jws, k) {
  // HMAC takes a key of any length. A short one can be guessed, so it proves nothing.
  if (k.length < 32) return false;
  const own = createHmac("sha256", k).update(jws.signed).digest();
  return own.length === jws.signature.length && timingSafeEqual(own, jws.signature);
}

/** The four members of a P-256 key. Throws Unreadable unless it is a point of the curve. */
export function publicJWK(value) {
  if (!isObject(value)) throw new Unreadable("not a key");
  const jwk = {};
  for (const name of ["kty", "crv", "x", "y"]) {
    if (typeof value[name] !== "string") throw new Unreadable("the key lacks members");
    jwk[name] = value[name];
  }
  publicKey(jwk);
  return jwk;
}

function publicKey(jwk) {
  if (jwk.kty !== "EC" || jwk.crv !== "P-256") throw new Unreadable("not a key of P-256");
  if (decode(jwk.x).length !== 32 || decode(jwk.y).length !== 32) {
    throw new Unreadable("not a point of P-256");
  }
  try {
    const { kty, crv, x, y } = jwk; // the record of a web phone has further members
    return createPublicKey({ key: { kty, crv, x, y }, format: "jwk" });
  } catch {
    throw new Unreadable("not a point of P-256");
  }
}
