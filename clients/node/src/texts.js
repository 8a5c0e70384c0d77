/** Texts from a browser, and names of users. */

import { isIP, isIPv4 } from "node:net";

const MOST_CHARACTERS = 512;
const LONGEST_LANGUAGES = 256;
const HIDDEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** The User-Agent as the relay accepts it: null if nothing of it is visible. */
export function browser(userAgent) {
  if (typeof userAgent !== "string") return null;
  const seen = userAgent.replace(HIDDEN, "").trim();
  // By characters: half of a surrogate pair must not remain.
  return [...seen].slice(0, MOST_CHARACTERS).join("").trim() || null;
}

/** The visitor's address in its short form; null if the text is no address. */
export function address(ip) {
  if (typeof ip !== "string" || !isIP(ip) || ip.includes("%")) return null;
  if (isIPv4(ip)) return ip;
  const short = new URL(`http://[${ip}]`).hostname.slice(1, -1);
  // A socket for both families maps addresses of IPv4.
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(short);
  if (!mapped) return short;
  const [high, low] = [parseInt(mapped[1], 16), parseInt(mapped[2], 16)];
  return [high >> 8, high & 255, low >> 8, low & 255].join(".");
}

/** The header fields that select the language of mails and texts, without odd and long ones. */
export function languages(accepted, chosen) {
  const fields = { "accept-language": accepted, "accept-user-language": chosen };
  const isSent = (value) => typeof value === "string" && value.length <= LONGEST_LANGUAGES
    && /^[\x20-\x7e]+$/.test(value);
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => isSent(value)));
}

/** Requires a text of whole characters: other names would be equal once they are bytes. */
export function requireName(username) {
  if (typeof username !== "string" || !username.isWellFormed()) {
    throw new TypeError("a username must be a text of whole characters");
  }
  return username;
}

/** A value as one segment of a path. HTTP clients resolve "." and "..", so they cannot be sent. */
export function segment(value) {
  if (["", ".", ".."].includes(requireName(value))) {
    throw new TypeError(`"${value}" cannot be a segment of a path`);
  }
  return encodeURIComponent(value);
}
