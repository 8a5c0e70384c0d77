// The secret of this phone's codes, which the relay seals to its agreement key: a JWE in compact
// form (RFC 7516) with ECDH-ES (RFC 7518, section 4.6) and A256GCM.

import { decode, decodeBase32, decodeObject, encode, text, utf8 } from "./bytes.js";
import { audience, digest } from "./signing.js";

const algorithms = { sha1: "SHA1", sha256: "SHA256", sha512: "SHA512" };

/**
 * Opens the secret for this phone and no other: {secret, algorithm, digits, period}. Throws if it
 * is for another key, phone, website or factor.
 */
export async function openSecret(phone, factor, sealed) {
  const parts = typeof sealed === "string" ? sealed.split(".") : [];
  const header = parts.length === 5 ? decodeObject(parts[0]) : null;
  const [iv, ciphertext, tag] = parts.slice(2).map(decode);
  const parties = { apu: utf8(audience(phone)), apv: utf8(`${phone.device}.${factor}`) };
  const expected = {
    alg: "ECDH-ES", enc: "A256GCM", typ: "twoefay-secret+jwe", aud: audience(phone), kid: phone.device, factor,
    apu: encode(parties.apu), apv: encode(parties.apv),
  };
  if (!header || parts[1] !== "" || !iv || !ciphertext || !tag || tag.length !== 16) throw new Error("it is not a JWE");
  for (const [name, value] of Object.entries(expected)) {
    if (header[name] !== value) throw new Error(`${name} is not as for this phone`);
  }
  const key = await contentKey(phone.agreementKey, header.epk, parties);
  const both = new Uint8Array([...ciphertext, ...tag]);
  const options = { name: "AES-GCM", iv, additionalData: utf8(parts[0]), tagLength: 128 };
  const plain = new Uint8Array(await crypto.subtle.decrypt(options, key, both));
  return readSecret(JSON.parse(text(plain)));
}

/** Derives the key by the Concat KDF, whose one round is enough for 256 bits. */
async function contentKey(agreementKey, epk, { apu, apv }) {
  const { crv, kty, x, y } = epk ?? {};
  const curve = { name: "ECDH", namedCurve: "P-256" };
  const other = await crypto.subtle.importKey("jwk", { crv, kty, x, y }, curve, false, []);
  const shared = new Uint8Array(await crypto.subtle.deriveBits({ ...curve, public: other }, agreementKey, 256));
  const withLength = (bytes) => [...number(bytes.length), ...bytes];
  const input = new Uint8Array([
    ...number(1), ...shared, ...withLength(utf8("A256GCM")), ...withLength(apu), ...withLength(apv), ...number(256),
  ]);
  return crypto.subtle.importKey("raw", await digest(input), "AES-GCM", false, ["decrypt"]);
}

const number = (value) => [24, 16, 8, 0].map((shift) => (value >>> shift) & 0xff);

function readSecret({ v, secret, algorithm, digits, period }) {
  const bytes = typeof secret === "string" ? decodeBase32(secret) : null;
  const isWhole = (value, least, most) => Number.isInteger(value) && value >= least && value <= most;
  if (v !== 1 || !bytes || bytes.length < 16 || !Object.hasOwn(algorithms, algorithm)
    || !isWhole(digits, 6, 8) || !isWhole(period, 10, 300)) {
    throw new Error("the secret has not the form of version 1");
  }
  return { secret: bytes, algorithm: algorithms[algorithm], digits, period };
}
