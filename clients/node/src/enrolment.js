/** An enrolment: the URI that the user's phone reads, with the website's secret `k` in it. */

import { inspect } from "node:util";
import { text } from "./answers.js";
import { OddAnswer } from "./errors.js";
import { encode } from "./jws.js";
import { drawQR } from "./qr.js";

const START = "twoefay://enrol?";

/**
 * What the user needs to bind a phone. Show `qr` once, to the logged-in user, and log none of it.
 * `uri` and `qr` are no members of its JSON, and are not printed.
 */
export class Enrolment {
  #uri;

  constructor({ token, uri = null, sentTo = null, awaits = null, expiresAt = null }) {
    Object.assign(this, { token, sentTo, awaits, expiresAt });
    this.#uri = uri;
    Object.freeze(this);
  }

  /** The link for an app on the same device. Null if the relay mails the code. */
  get uri() {
    return this.#uri;
  }

  /** The QR code as SVG, to stand in HTML. It is drawn here, since the relay must not see `k`. */
  get qr() {
    if (this.#uri === null) throw new Error("the relay mails this code: there is nothing to draw");
    return drawQR(this.#uri, "QR code for your phone");
  }

  [inspect.custom](depth, options) {
    return `Enrolment ${inspect({ ...this }, options)}`;
  }
}

/** Reads the relay's activation, and adds what the website chose, and `k`. */
export function makeEnrolment(policy, token, activation, k) {
  const has = (name) => activation[name] !== undefined && activation[name] !== null;
  if (has("awaits")) return new Enrolment({ token, awaits: text(activation, "awaits") });
  const expiresAt = text(activation, "expires_at");
  if (has("sent_to")) {
    return new Enrolment({ token, sentTo: text(activation, "sent_to"), expiresAt });
  }
  const uri = text(activation, "uri");
  requireOpenEnd(uri);
  return new Enrolment({ token, uri: drawn(policy, uri, k), expiresAt });
}

function drawn({ appOrigin, phones }, uri, k) {
  // Browsers send no fragment: the server of the page does not see `k`.
  const start = appOrigin === null ? START : `${appOrigin}/phone/#`;
  const wish = phones === "any" ? "" : `&phones=${phones}`;
  return `${start}${uri.slice(START.length)}${wish}&k=${encode(k)}`;
}

/** The relay must not choose `k`, and nothing may follow that hides the one of the website. */
function requireOpenEnd(uri) {
  if (!uri.startsWith(START) || !/^[A-Za-z0-9%&=._~:/?-]{1,2000}$/.test(uri)) {
    throw new OddAnswer("the relay's activation is no URI to which k can be added");
  }
  if (new URLSearchParams(uri.slice(START.length)).has("k")) {
    throw new OddAnswer("the relay's activation already has a k");
  }
}
