/** A login from both sides: what the website asked, and how it ended. */

import { isObject } from "./jsontext.js";

export const VERIFICATIONS = ["none", "passcode", "biometric"];
export const ASSURANCES = ["low", "restricted", "substantial", "high"];

/**
 * The website's own record of one login. Keep it in the visitor's session until the login ends.
 *
 * `check` compares the receipt with it. Only `challenge` comes from the relay, and `number`
 * if `leastDigits` is 0.
 */
export class Login {
  constructor({
    challenge, number = null, askedAt, sent, factors = null, minAssurance = null, factor = null,
    hasPhone = true, codesLocked = false, missing = [],
  }) {
    const isRecord = typeof challenge === "string" && Number.isSafeInteger(askedAt)
      && isObject(sent) && typeof sent.username === "string" && typeof sent.request === "string"
      && (number === null || typeof number === "string")
      && (factors === null || Array.isArray(factors));
    if (!isRecord) throw new TypeError("not the record of a login");
    Object.assign(this, {
      challenge, number, askedAt, sent, factors, minAssurance, factor, hasPhone, codesLocked,
      missing,
    });
  }

  get username() {
    return this.sent.username;
  }

  get request() {
    return this.sent.request;
  }

  /** The record of a session, in which it has become an object of JSON. */
  static fromJSON(value) {
    if (value instanceof Login) return value;
    if (!isObject(value)) throw new TypeError("not the record of a login");
    return new Login(value);
  }
}

/**
 * How a login stands. Let somebody in only if `approved` is true; in JavaScript, the decision
 * itself is always true.
 */
export class Decision {
  #answer;

  constructor(state, facts, answer) {
    const {
      reason = null, factor = null, proof = null, assurance = null, device = null,
      userVerification = null,
    } = facts;
    Object.assign(this, { state, reason, factor, proof, assurance, device, userVerification });
    this.#answer = answer;
    Object.freeze(this);
  }

  get approved() {
    return this.state === "approved";
  }

  get ended() {
    return this.state !== "open";
  }

  /** The relay's whole answer, beyond what was checked. */
  get answer() {
    return this.#answer;
  }
}
