// A bound phone: lists its requests, answers them, and updates its own data. See enrolment.js for
// the members of a phone.

import { decodeObject, encode, moment } from "./bytes.js";
import { CallFailure, accepted, odd } from "./calls.js";
import { Refused, isID, readQuestion } from "./context.js";
import { openSecret } from "./secret.js";
import * as signing from "./signing.js";

/** The largest number of known challenges that the relay accepts. */
const mostKnown = 16;

export class Responder {
  constructor(phone, line) {
    Object.assign(this, { phone, line });
  }

  /**
   * Returns {questions, refused, challenges}. With `seconds`, the relay holds the request that long
   * until the list differs from `known`.
   */
  async pending({ seconds = 0, known = [], signal } = {}) {
    const waits = seconds > 0;
    const answer = await this.line.send("/pending", {
      body: waits && known.length > 0 ? { known: known.slice(0, mostKnown) } : {},
      fields: waits ? { prefer: `wait=${seconds}` } : {},
      signal,
    });
    const { pending, time } = accepted(answer);
    const now = moment(time);
    if (!Array.isArray(pending) || now === null) throw odd(answer, "without pending or time");
    const [questions, refused] = [[], []];
    for (const entry of pending) {
      try {
        questions.push(readQuestion(entry, this.phone.website, now));
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        refused.push(error);
      }
    }
    const challenges = [...questions, ...refused].map(({ challenge }) => challenge).filter((one) => one !== null);
    return { questions, refused, challenges };
  }

  /**
   * Signs a decision, once. A repetition after a lost answer sends the same. `proofs` adds what an
   * approval needs besides: `owner(jws)` returns the assertion of a passkey, `pin(jws)` a
   * signature.
   */
  async sign(question, decision, proofs = {}) {
    const answer = await signing.decision(this.phone, question, decision, this.line.now());
    const body = { challenge: question.challenge, answer };
    if (decision.word !== "approve") return { path: "/failure", body };
    if (proofs.owner) body.webauthn = await proofs.owner(answer);
    if (proofs.pin) body.pin_signature = await proofs.pin(answer);
    return { path: "/success", body };
  }

  /** Sends a signed answer and returns its result: `success` or `failure`. */
  async send(signed) {
    const answer = await this.line.send(signed.path, { body: signed.body });
    const { login } = accepted(answer);
    if (login !== "success" && login !== "failure") throw odd(answer, "with another login");
    return login;
  }

  async rename(name) {
    accepted(await this.line.send("/device", { body: { name } }));
  }

  /** Changes the device token. With an empty one, the phone polls. */
  async movePush(token) {
    const statement = await signing.pushToken(this.phone, token, this.line.now());
    accepted(await this.line.send("/device", { body: { dev_token: statement } }));
  }

  /**
   * Leaves, or with `leaves: false` only asks whether the phone is bound. Returns {isBound: true}
   * or {isBound: false, by}. A page cannot verify the relay's signature, only the statement's
   * content.
   */
  async goodbye(leaves) {
    const nonce = encode(crypto.getRandomValues(new Uint8Array(24)));
    const statement = await signing.goodbye(this.phone, { nonce, leaves }, this.line.now());
    const answer = await this.line.send("/device/goodbye", { body: { goodbye: statement }, proved: false });
    const { bound, farewell } = accepted(answer);
    if (bound === true && !leaves) return { isBound: true };
    const claims = signing.unverifiedClaims(farewell, "twoefay-farewell+jwt", decodeObject);
    const thumbprint = await signing.thumbprint(this.phone.jwk);
    const expected = { aud: signing.audience(this.phone), device: this.phone.device, thumbprint, nonce };
    for (const [name, value] of Object.entries(expected)) {
      if (claims?.[name] !== value) throw odd(answer, `with a farewell whose ${name} is not as for this phone`);
    }
    return { isBound: false, by: ["phone", "code", "website", "operator"].includes(claims.by) ? claims.by : "website" };
  }

  /** Unbinds this phone without a signed answer, for a relay that does not know goodbyes. */
  async unbind() {
    accepted(await this.line.send("/device", { method: "DELETE" }));
  }

  /** Reports the phone's system and state. Reports once more if the relay kept another report. */
  async report(values) {
    const send = async (now) => {
      const statement = await signing.status(this.phone, values, now);
      return accepted(await this.line.send("/device/status", { body: { status: statement } })).report ?? {};
    };
    const now = this.line.now();
    const kept = moment((await send(now)).reported_at);
    if (kept !== null && kept > Math.floor(now / 1000) * 1000) await send(kept + 1000);
  }

  /** Fetches the secret of the phone's codes: {factor, secret, algorithm, digits, period}. */
  async fetchCodes(pin = null) {
    const request = await signing.secretRequest(this.phone, this.line.now());
    const body = pin ? { request, pin_signature: await pin.sign(request) } : { request };
    const answer = await this.line.send("/device/totp", { body });
    const { factor, secret } = accepted(answer);
    if (!isID(factor)) throw odd(answer, "with a factor that is none");
    try {
      return { factor, ...(await openSecret(this.phone, factor, secret)) };
    } catch (error) {
      throw odd(answer, `with a secret that is not for this phone: ${error.message}`);
    }
  }

  /** The state of the PIN: {state, version, tries_left, puk_tries_left}. */
  async pinState() {
    const answer = await this.line.send("/device/pin", { method: "GET" });
    const { pin } = accepted(answer);
    if (!["none", "set", "locked"].includes(pin?.state) || !Number.isInteger(pin.version)) throw odd(answer, "without a PIN's state");
    return pin;
  }

  /**
   * Changes the PIN. `change` has {change, version, pin, puk?, unlock_code?}; `by` has the key that
   * allows it: {member: `pin_signature` or `puk_signature`, key}, or null. All attempts are the
   * same.
   */
  async signPINChange(change, by) {
    const pin = await signing.pinChange(this.phone, change, this.line.now());
    return by ? { pin, [by.member]: await by.key.sign(pin) } : { pin };
  }

  async sendPINChange(body) {
    return accepted(await this.line.send("/device/pin", { body })).pin;
  }
}

/**
 * Whether a failure says that the phone is suspended or unbound, and not that its proof is stale.
 */
export const isUnbound = (error) => error instanceof CallFailure && error.status === 401;
