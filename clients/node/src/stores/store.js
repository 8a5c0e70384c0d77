/**
 * Where a website keeps pinned keys, secrets of open enrolments and open requests: see `Store` in
 * index.d.ts. A store is what makes the relay untrusted, so it belongs into the website's hands.
 */

import { createHash } from "node:crypto";
import { requireName } from "../texts.js";

/** How long rows count, in seconds. */
export const REQUEST_LIFE = 86_400;
export const SECRET_LIFE = 86_400;
export const EVENT_LIFE = 30 * 86_400;

const METHODS = [
  "addUser", "token", "addSecret", "secrets", "pin", "pins", "wasPinned", "unpin", "unpinByToken",
  "forget", "open", "spend", "hasSeen", "see",
];

export function requireStore(store) {
  const lacking = METHODS.filter((name) => typeof store?.[name] !== "function");
  if (lacking.length > 0) throw new TypeError(`the store lacks ${lacking.join(", ")}`);
  return store;
}

/**
 * The name as a key. Databases compare texts without case or trailing spaces, as their collation
 * says, and file systems have odd names: another user's phone must not count because of that.
 */
export function keyOf(username) {
  return digest(requireName(username));
}

export function digest(value) {
  return createHash("sha256").update(value).digest("hex");
}
