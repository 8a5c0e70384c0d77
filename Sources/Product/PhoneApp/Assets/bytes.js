// The encodings of the device protocol. Every decoder is strict: each value has exactly one
// encoding.

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

export const utf8 = (text) => new TextEncoder().encode(text);

/** base64url without padding (RFC 4648, section 5). */
export function encode(bytes) {
  let text = "";
  for (const byte of new Uint8Array(bytes)) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/**
 * Decodes base64url; null for an invalid character, padding, an impossible length or leftover bits.
 */
export function decode(text) {
  if (typeof text !== "string" || text.length % 4 === 1) return null;
  const bytes = new Uint8Array((text.length * 3) >> 2);
  let [bits, held, at] = [0, 0, 0];
  for (const letter of text) {
    const value = letters.indexOf(letter);
    if (value < 0) return null;
    bits = (bits << 6) | value;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes[at] = (bits >> held) & 0xff;
    at += 1;
    bits &= (1 << held) - 1;
  }
  return bits === 0 ? bytes : null;
}

/** Decodes Base32 without padding, in upper or lower case; null for anything else. */
export function decodeBase32(text) {
  const plain = text.toUpperCase().replace(/=+$/, "");
  if (!/^[A-Z2-7]+$/.test(plain) || [1, 3, 6].includes(plain.length % 8)) return null;
  const bytes = [];
  let [bits, held] = [0, 0];
  for (const letter of plain) {
    bits = (bits << 5) | "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(letter);
    held += 5;
    if (held < 8) continue;
    held -= 8;
    bytes.push(bits >> held);
    bits &= (1 << held) - 1;
  }
  return bits === 0 ? new Uint8Array(bytes) : null;
}

/** Decodes UTF-8; throws if the bytes are not valid. */
export const text = (bytes) => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);

/** Decodes percent-encoded UTF-8; null for an incomplete escape or invalid UTF-8. A + stays a +. */
export function unescape(escaped) {
  try {
    return decodeURIComponent(escaped);
  } catch {
    return null;
  }
}

/**
 * Reads a JSON object from bytes; throws if they are not an object, or could be read in two ways.
 *
 * JSON.parse drops the first of two members with one name, so the object is written again and
 * compared. The relay writes no spaces and escapes only the characters that JSON requires.
 */
export function readObject(bytes) {
  const written = text(bytes);
  const value = JSON.parse(written);
  if (value === null || typeof value !== "object" || Array.isArray(value)) throw new Error("it is not a JSON object");
  if (JSON.stringify(value) !== written) throw new Error("it can be read in two ways");
  return value;
}

/** RFC 3339 in UTC, as milliseconds since 1970; null for anything else. */
export function moment(text) {
  if (typeof text !== "string" || !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/.test(text)) return null;
  const at = Date.parse(text);
  // Some browsers read 30 February as 2 March.
  return Number.isNaN(at) || new Date(at).toISOString().slice(0, 19) !== text.slice(0, 19) ? null : at;
}

/** The JSON object in a part of a JWS or JWE; null if it is not one. */
export function decodeObject(part) {
  const bytes = decode(part);
  if (bytes === null) return null;
  try {
    const value = JSON.parse(text(bytes));
    return value !== null && typeof value === "object" && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}
