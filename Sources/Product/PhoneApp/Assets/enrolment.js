// The binding of a phone at a website, as docs/phones/device-protocol.md specifies.
//
// A phone is a plain object that IndexedDB can store: {id, relay, at, app, pin, website, token,
// jwk, key, agreement, agreementKey, passkey, pushToken, name, madeAt, state}. `relay` is the
// identity of the relay, which all statements name, and `at` the origin of its routes for browsers.
// `key`, which signs, and `agreementKey`, to which the relay seals secrets, are CryptoKeys that
// cannot be read; `jwk` and `agreement` are their public keys. `passkey` is the credential that
// checks the owner, or null. `state` is `asked`, with code and perhaps websiteKey, or `bound`, with
// device.

import { accepted, odd } from "./calls.js";
import { isID } from "./context.js";
import * as signing from "./signing.js";

/**
 * Makes the phone for an activation. Store it before it is bound: the relay binds a key only once.
 */
export async function beginEnrolment(activation, { name, app = null, passkey = null, pushToken = "" }, now = Date.now()) {
  const { privateKey, publicKey } = await signing.makeKey();
  const jwk = await signing.jwkOf(publicKey);
  const agreement = await signing.makeAgreementKey();
  return {
    id: await signing.thumbprint(jwk),
    relay: activation.relay,
    at: activation.at ?? activation.relay,
    app,
    pin: activation.pin,
    website: activation.website,
    token: activation.token,
    jwk,
    key: privateKey,
    agreement: await signing.jwkOf(agreement.publicKey),
    agreementKey: agreement.privateKey,
    passkey,
    pushToken,
    name,
    madeAt: now,
    state: "asked",
    code: activation.code,
    websiteKey: activation.k ? await signing.holdWebsiteKey(activation.k) : null,
  };
}

/** Whether this phone was made for that activation. */
export const isFor = (phone, activation) =>
  phone.state === "asked" && ["relay", "website", "token", "code", "pin"].every((name) => phone[name] === activation[name]);

/** Sends a new key with its code until the relay has bound it. All attempts are the same. */
export class Enroller {
  #body = null;

  constructor(phone, line, platform = "web") {
    Object.assign(this, { phone, line, platform });
  }

  /**
   * Returns {login: "verified", phone, revocationCode}, or {login: "wait", device, number} while
   * the user has to approve on another bound phone, with the number that this one shows.
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
   * Returns the bound phone after a refused attempt: an earlier attempt may have bound the key, and
   * its answer was lost. Null if the key belongs to no active phone, so that it may be deleted.
   */
  async boundUnheard() {
    const answer = await this.line.send("/device", { body: { certificate: true } });
    // A refused nonce, as after a restart of the relay, says nothing about the key.
    if (answer.status === 401 && !answer.field("www-authenticate")?.includes("use_dpop_nonce")) return null;
    // A phone with too many certificates is bound, too, but the answer does not say its device.
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
      platform: this.platform,
    };
    if (this.platform === "ios") body.environment = "production";
    if (phone.pushToken) body.dev_token = phone.pushToken;
    if (phone.websiteKey) body.binding = await signing.binding(phone, phone.websiteKey);
    if (phone.name) body.name = phone.name;
    return body;
  }

  /**
   * Checks the certificate. DPoP does not use it, but a certificate for another key is an invalid
   * answer.
   */
  #check(answer) {
    // The authority of the phones may issue it later.
    if (answer.body.certificate === undefined) return;
    const lines = String(answer.body.certificate).split("\n").filter((line) => line !== "" && !line.startsWith("-----"));
    const point = ["x", "y"].map((name) => atob(this.phone.jwk[name].replaceAll("-", "+").replaceAll("_", "/"))).join("");
    let bytes = "";
    try {
      bytes = atob(lines.join(""));
    } catch {
      // It is not a certificate.
    }
    if (!bytes.includes(`\x04${point}`)) throw odd(answer, "with a certificate for another key");
  }

  /** The bound phone, without its code and the website's key. */
  #bound(device) {
    const { code, websiteKey, ...phone } = this.phone;
    return { ...phone, state: "bound", device };
  }
}
