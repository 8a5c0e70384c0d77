// A phone at one website, as docs/phones/device-protocol.md has it: it is bound, hears of requests, and answers them.
//
// A phone is a plain object that IndexedDB can keep: {id, relay, pin, website, token, jwk, key, pushToken, name, madeAt,
// state}, `key` a CryptoKey that nobody can read. `state` is `asked`, with code and perhaps websiteKey, or `bound`, with device.

import { accepted, odd } from "./calls.js";
import { Refused, isID, readQuestion } from "./context.js";
import { moment } from "./bytes.js";
import * as signing from "./signing.js";

/** What the relay takes as known. */
const mostKnown = 16;

/** The new phone for an activation. It has to be kept before it is bound: the relay binds one key once. */
export async function beginEnrolment(activation, { name, pushToken }, now = Date.now()) {
  const { privateKey, publicKey } = await signing.makeKey();
  const jwk = await signing.jwkOf(publicKey);
  return {
    id: await signing.thumbprint(jwk),
    relay: activation.relay,
    pin: activation.pin,
    website: activation.website,
    token: activation.token,
    jwk,
    key: privateKey,
    pushToken,
    name,
    madeAt: now,
    state: "asked",
    code: activation.code,
    websiteKey: activation.k ? await signing.holdWebsiteKey(activation.k) : null,
  };
}

/** Whether this is an attempt to use that very activation. */
export const isFor = (phone, activation) =>
  phone.state === "asked" && ["relay", "website", "token", "code", "pin"].every((name) => phone[name] === activation[name]);

/** Sends a new key with its code, until the relay says that it is bound: each attempt is the same once more. */
export class Enroller {
  #body = null;

  constructor(phone, line) {
    Object.assign(this, { phone, line });
  }

  /**
   * {login: "verified", phone, revocationCode}, or {login: "wait", device, number} while the person has to approve on a
   * phone that is bound already, with the number that this one shows.
   */
  async attempt() {
    this.#body ??= await this.#make();
    const answer = await this.line.send("/verify", { body: this.#body, proved: false });
    const { login, device, number, revocation_code: revocationCode } = accepted(answer);
    if (!isID(device)) throw odd(answer, "with a device that is none");
    if (login === "wait") {
      if (number !== undefined && number !== null && !/^\d{1,9}$/.test(number)) throw odd(answer, "with a number that is none");
      return { login, device, number: number ?? null };
    }
    if (login !== "verified" || !isID(revocationCode)) throw odd(answer, "with another login, or no revocation code");
    this.#check(answer);
    return { login, phone: this.#bound(device), revocationCode };
  }

  /**
   * What became of a key whose attempt is refused: the relay may have bound it before, with an answer that nobody saw.
   * Null if the key is no active phone's: nothing is lost with it.
   */
  async boundUnheard() {
    const answer = await this.line.send("/device", { body: { certificate: true } });
    // A nonce that is not taken, as by a relay that was just started, says nothing of the key.
    if (answer.status === 401 && !answer.field("www-authenticate")?.includes("use_dpop_nonce")) return null;
    const { device } = accepted(answer);
    if (!isID(device)) throw odd(answer, "with a device that is none");
    this.#check(answer);
    return this.#bound(device);
  }

  async #make() {
    const { phone } = this;
    const body = {
      id_token: phone.token,
      activation_code: phone.code,
      proof: await signing.enrolment(phone, phone.code, this.line.now()),
      platform: "ios",
      environment: "production",
    };
    if (phone.pushToken) body.dev_token = phone.pushToken;
    if (phone.websiteKey) body.binding = await signing.binding(phone, phone.websiteKey);
    if (phone.name) body.name = phone.name;
    return body;
  }

  /** The certificate is not used here, since DPoP does without; but one for another key is no answer to this phone. */
  #check(answer) {
    const lines = String(answer.body.certificate).split("\n").filter((line) => line !== "" && !line.startsWith("-----"));
    const point = ["x", "y"].map((name) => atob(this.phone.jwk[name].replaceAll("-", "+").replaceAll("_", "/"))).join("");
    let bytes = "";
    try {
      bytes = atob(lines.join(""));
    } catch {
      // No certificate at all: it holds nothing.
    }
    if (!bytes.includes(`\x04${point}`)) throw odd(answer, "with a certificate for another key");
  }

  /** Code and website's key are forgotten. */
  #bound(device) {
    const { code, websiteKey, ...phone } = this.phone;
    return { ...phone, state: "bound", device };
  }
}

/** A bound phone at work: asks what there is to answer, answers it, and keeps itself known. */
export class Responder {
  constructor(phone, line) {
    Object.assign(this, { phone, line });
  }

  /**
   * {questions, refused, challenges}. With `seconds`, the relay waits so long until that is something else than `known`.
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

  /** Signed once: sent again after an answer that was lost, it is the same answer. */
  async sign(question, decision) {
    const answer = await signing.decision(this.phone, question, decision, this.line.now());
    return { path: decision.word === "approve" ? "/success" : "/failure", body: { challenge: question.challenge, answer } };
  }

  /** What the relay makes of it: `success` or `failure`. */
  async send(signed) {
    const answer = await this.line.send(signed.path, { body: signed.body });
    const { login } = accepted(answer);
    if (login !== "success" && login !== "failure") throw odd(answer, "with another login");
    return login;
  }

  async rename(name) {
    accepted(await this.line.send("/device", { body: { name } }));
    return { ...this.phone, name };
  }

  /** An empty token: it asks by itself from now on. */
  async movePush(token) {
    const statement = await signing.pushToken(this.phone, token, this.line.now());
    accepted(await this.line.send("/device", { body: { dev_token: statement } }));
    return { ...this.phone, pushToken: token };
  }

  /** The relay knows this phone no more. */
  async unbind() {
    accepted(await this.line.send("/device", { method: "DELETE" }));
  }
}
