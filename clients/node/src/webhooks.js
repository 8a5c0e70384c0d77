/**
 * Webhooks of the relay: Standard Webhooks 1.0.
 *
 * The signature is checked over the bytes as they arrived, before one of them is parsed. Never let
 * a user in by a webhook alone: pass its data to `check`, with the login that this browser started.
 */

import { createHmac, timingSafeEqual } from "node:crypto";
import { ID, WebhookError } from "./errors.js";
import { isObject, readObject, reading } from "./jsontext.js";
import { requireNames } from "./policy.js";
import { requireStore } from "./stores/store.js";

const TOLERANCE = 300;
/** An empty key would accept what anybody signs; Standard Webhooks wants 24 bytes. */
const LEAST_BYTES = 24;

export class Webhooks {
  #keys;
  #store;
  #clock;

  /** `secrets` are the lines of shop.secret and, while the secret changes, shop.secret.new. */
  constructor(secrets, options = {}) {
    requireNames(options, ["store", "clock"]);
    if (!Array.isArray(secrets) || secrets.length === 0) {
      throw new TypeError("a receiver of webhooks needs a list of secrets");
    }
    this.#keys = secrets.map(keyOf);
    this.#store = options.store ? requireStore(options.store) : null;
    this.#clock = options.clock ?? (() => Date.now() / 1000);
  }

  /**
   * The event of a webhook. Throws WebhookError: then answer 400, and do nothing else. Ignore types
   * of events that you do not know: the relay may add some.
   */
  verify(headers, body) {
    if (!(body instanceof Uint8Array)) {
      throw new TypeError("the body must be the bytes as they arrived, not parsed");
    }
    const fields = fieldsOf(headers);
    const [id, moment, signatures] = ["id", "timestamp", "signature"]
      .map((name) => fields.get(`webhook-${name}`) ?? "");
    const isUsable = ID.test(id) && signatures !== "" && /^[0-9]{1,11}$/.test(moment);
    if (!isUsable) throw new WebhookError("headers");
    if (Math.abs(this.#clock() - Number(moment)) > TOLERANCE) throw new WebhookError("time");
    if (!this.#isSigned(`${id}.${moment}.`, body, signatures)) throw new WebhookError("signature");
    return eventOf(id, body);
  }

  /**
   * Handles a webhook, and returns the status to answer: 204, or 400.
   *
   * `act` runs before the id is stored, so no event is lost. It may run twice if the process dies
   * in between: let it have the same effect then. If it throws, answer 500: the relay retries.
   */
  async receive(headers, body, act) {
    let event;
    try {
      event = this.verify(headers, isEmpty(body) ? new Uint8Array() : body);
    } catch (error) {
      if (error instanceof WebhookError) return 400;
      throw error;
    }
    if (this.#store === null) {
      await act(event);
    } else if (!await this.#store.hasSeen(event.id)) {
      const { token, device } = event.data;
      const isKnown = isID(token) && isID(device);
      // A lost phone must not count, whatever the relay says later. The user stays one who had a
      // phone: the relay, which signs webhooks, cannot make room for another one.
      if (event.type === "device.unbound" && isKnown) {
        await this.#store.unpinByToken(token, device);
      }
      await act(event);
      await this.#store.see(event.id, Math.floor(this.#clock()));
    }
    return 204;
  }

  #isSigned(start, body, signatures) {
    const given = signatures.split(" ").filter((part) => part.startsWith("v1,"))
      .map((part) => Buffer.from(part.slice(3)));
    const own = this.#keys.map((key) =>
      Buffer.from(createHmac("sha256", key).update(start).update(body).digest("base64")));
    // No early end: the time must not tell which of them matched.
    const matches = own.flatMap((one) => given.map((other) =>
      one.length === other.length && timingSafeEqual(one, other)));
    return matches.includes(true);
  }
}

/** What Express makes of a request without a body, which anybody may send. */
function isEmpty(body) {
  return body === undefined || (isObject(body) && Object.keys(body).length === 0);
}

function isID(value) {
  return typeof value === "string" && ID.test(value);
}

function keyOf(secret) {
  const text = String(secret).trim().replace(/^whsec_/, "");
  const key = Buffer.from(text, "base64");
  if (key.toString("base64") !== text) {
    throw new TypeError("a secret of webhooks is whsec_ and base64");
  }
  if (key.length < LEAST_BYTES) throw new TypeError("the secret of webhooks is too short");
  return key;
}

/** Header fields by their names in lower case: of Node's requests, or of `fetch`. */
function fieldsOf(headers) {
  const pairs = typeof headers.entries === "function" ? headers.entries() : Object.entries(headers);
  const texts = [...pairs].filter(([, value]) => typeof value === "string");
  return new Map(texts.map(([name, value]) => [name.toLowerCase(), value]));
}

function eventOf(id, body) {
  const isWrong = () => new WebhookError("body");
  const { type, timestamp, data } = reading(() => readObject(body), isWrong);
  if (typeof type !== "string" || typeof timestamp !== "string" || !isObject(data)) throw isWrong();
  return { id, type, timestamp, data };
}
