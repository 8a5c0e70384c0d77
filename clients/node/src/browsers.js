/**
 * Known browsers: a cookie that keeps an attacker with a password from disturbing the owner's
 * logins.
 *
 * It lets nobody in and is no second factor. It only decides which logins share a limit. The form
 * is that of the other clients, so that all servers of a website accept it.
 */

import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { decode, encode } from "./jws.js";
import { Unreadable } from "./jsontext.js";
import { requireNames } from "./policy.js";
import { requireName } from "./texts.js";

const LIFE = 180 * 86_400;
const LEAST_BYTES = 32;
/** Seconds by which the clocks of a website's servers may differ. */
const AHEAD = 60;

export class KnownBrowsers {
  /** The Max-Age of the cookie, in seconds. */
  static LIFE = LIFE;

  #key;

  /** `key` is a secret of the website, at least 32 bytes. */
  constructor(key) {
    if (!(key instanceof Uint8Array) || key.length < LEAST_BYTES) {
      throw new TypeError("the key needs at least 32 bytes");
    }
    this.#key = key;
  }

  /**
   * The cookie of this user's browser. Set it with HttpOnly, Secure, SameSite=Lax and a Max-Age of
   * LIFE, after a login whose proof was checked.
   */
  value(username, options = {}) {
    requireNames(options, ["now"]);
    const body = Buffer.alloc(20);
    body.writeBigUInt64BE(BigInt(Math.floor(options.now ?? Date.now() / 1000)));
    randomBytes(12).copy(body, 8);
    return encode(Buffer.concat([body, this.#tag(body, username)]));
  }

  /**
   * Whether the cookie was made for this user, and not before `notBefore`, such as the time of the
   * last change of the password. Pass the result as `known` to `ask`.
   */
  knows(value, username, options = {}) {
    requireNames(options, ["now", "notBefore"]);
    const { now = Date.now() / 1000, notBefore = 0 } = options;
    const data = bytesOf(value);
    if (data.length !== 52) return false;
    const tag = this.#tag(data.subarray(0, 20), username);
    if (!timingSafeEqual(data.subarray(20), tag)) return false;
    const made = Number(data.readBigUInt64BE());
    return made <= now + AHEAD && now < made + LIFE && made >= notBefore;
  }

  #tag(body, username) {
    const code = createHmac("sha256", this.#key).update("twoefay known browser\0");
    return code.update(body).update(requireName(username)).digest();
  }
}

/** The bytes of a cookie; none if it is not ours. */
function bytesOf(value) {
  try {
    return typeof value === "string" ? decode(value) : Buffer.alloc(0);
  } catch (error) {
    if (error instanceof Unreadable) return Buffer.alloc(0);
    throw error;
  }
}
