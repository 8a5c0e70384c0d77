/** The operations of one website at the relay. `Relay` adds real files and connections. */

import { isDeepStrictEqual } from "node:util";
import { identity, objects, optional, text } from "./answers.js";
import { checkBinding } from "./bindings.js";
import { makeEnrolment } from "./enrolment.js";
import {
  BindingError, Invalid, Limited, NotFound, NUMBER, OddAnswer, ReceiptError, ShownOnce,
} from "./errors.js";
import { isObject } from "./jsontext.js";
import { ASSURANCES, Decision, Login } from "./login.js";
import { LONGEST_LIFE, MOST_DIGITS, requireNames } from "./policy.js";
import { checkSuccess } from "./receipts.js";
import { mayPass, send } from "./retries.js";
import { requireStore } from "./stores/store.js";
import { address, browser, languages, requireName, segment } from "./texts.js";

const LONGEST_HOLD = 60;
/** A number of one digit is none (docs/websites/api.md). */
const LEAST_DIGITS = 2;
/** Seconds until a call that was limited or lost is repeated, if the relay names none. */
const PAUSE = 5;
/** A relay that shuts down answers early; a repetition at once would meet it again. */
const SHORTEST_ROUND = 0.5;

const REGISTERED = {
  email: "email", phone: "phone", displayName: "display_name", language: "language",
  expiresAt: "expires_at",
};
const ASKED = [
  "ip", "userAgent", "service", "action", "details", "number", "factors", "minAssurance", "known",
  "expiresIn", "acceptLanguage", "chosenLanguage",
];

export class Client {
  #world;

  constructor(policy, store, world) {
    this.policy = policy;
    this.store = requireStore(store);
    this.#world = world;
  }

  // Enrolment

  /** Registers a user, once. Throws Conflict if the relay knows the user: see `enrolment`. */
  async register(username, options = {}) {
    segment(username);
    requireNames(options, Object.keys(REGISTERED));
    const body = { username };
    for (const [name, member] of Object.entries(REGISTERED)) {
      if (isGiven(options[name])) body[member] = options[name];
    }
    let answer;
    try {
      answer = await this.#send({ method: "POST", path: "/register", body }, 201);
    } catch (error) {
      // A lost answer to an attempt that was done: the user exists, without a phone.
      if (error instanceof ShownOnce) return this.enrolment(username);
      throw error;
    }
    if (!isObject(answer.activation)) throw new OddAnswer("activation is no object");
    return this.#enrolment(username, identity(answer, "token"), answer.activation);
  }

  /**
   * Makes another code, for a further phone or after the first has expired (ten minutes).
   *
   * Throws ApprovalRequired once the user has a factor: show its number, wait for its challenge,
   * and call again with it as `approval`.
   */
  async enrolment(username, options = {}) {
    requireNames(options, ["approval"]);
    const path = `/user/${segment(username)}/activation`;
    const token = await this.store.token(username) ?? identity(await this.user(username), "token");
    const body = isGiven(options.approval) ? { approval: options.approval } : {};
    const activation = await this.#send({ method: "POST", path, body }, 201, 202);
    return this.#enrolment(username, token, activation);
  }

  async #enrolment(username, token, activation) {
    const k = this.#world.random(32);
    const made = makeEnrolment(this.policy, token, activation, k);
    await this.store.addUser(username, token);
    if (made.uri !== null) await this.store.addSecret(username, k, this.#now());
    return made;
  }

  /**
   * Pins the phones that have read a code of this website, and returns their new ids.
   *
   * The list is empty until a phone has read the code. Throws BindingError if the relay reports a
   * key that no phone proved. `wait` calls it too, for a phone that was bound since.
   */
  async confirm(username) {
    const user = await this.user(username);
    const token = await this.store.token(username);
    if (isGiven(token) && token !== identity(user, "token")) throw new BindingError("token");
    const pins = await this.store.pins(username);
    // Once, and each `k` is used once: an answer may name thousands of phones.
    let secrets = await this.store.secrets(username, this.#now());
    const pinned = [];
    let fault = null;
    for (const device of objects(user, "devices")) {
      const id = identity(device, "device");
      if (pins.has(id) || device.state !== "active" || !isGiven(device.binding)) continue;
      try {
        const { jwk, k } = checkBinding(this.policy, device, identity(user, "token"), secrets);
        const isPinned = await this.store.pin(username, id, jwk, k);
        if (isPinned) pinned.push(id);
        // A pin has deleted all of them.
        secrets = isPinned ? [] : secrets.filter((other) => other !== k);
      } catch (error) {
        if (!(error instanceof BindingError)) throw error;
        fault = error;
      }
    }
    if (fault !== null && pinned.length === 0) throw fault;
    return pinned;
  }

  // Logins

  /**
   * Opens a login, after the right password. Keep the result in the visitor's session.
   *
   * `ip`, `userAgent` and `acceptLanguage` may stand as the browser sent them: they are cleaned or
   * left out. `details` are pairs of label and value, which the phone shows and signs.
   */
  async ask(username, options = {}) {
    requireNames(options, ASKED);
    const { number = null, factors = null, minAssurance = null } = options;
    if (minAssurance !== null && !ASSURANCES.includes(minAssurance)) {
      throw new TypeError(`minAssurance must be one of ${ASSURANCES.join(", ")}`);
    }
    const request = this.#world.random(16).toString("hex");
    const sent = shown({ username: requireName(username), request }, options);
    const body = { ...sent, ...wishes(options) };
    const headers = languages(options.acceptLanguage, options.chosenLanguage);
    const askedAt = this.#now();
    await this.store.open(request, askedAt);
    const answer = await this.#open(body, number, headers);
    return new Login({
      challenge: identity(answer, "challenge"), number: optional(answer, "number"), askedAt, sent,
      factors, minAssurance,
      factor: optional(answer, "factor"),
      hasPhone: answer.login === "verified",
      codesLocked: answer.codes === "locked",
      missing: (Array.isArray(answer.missing) ? answer.missing : []).filter(isText),
    });
  }

  /**
   * Opens the login with a number that the website chose. A relay that chose it could show two
   * visitors the same, and have the user approve the login of the other one.
   */
  async #open(body, number, headers) {
    const { leastDigits } = this.policy;
    if (number !== null || leastDigits === 0) return this.#post(body, number, headers);
    try {
      return await this.#post(body, this.#number(Math.max(LEAST_DIGITS, leastDigits)), headers);
    } catch (error) {
      // The operator may have raised the number of digits. Only that choice is the relay's.
      const isTooShort = error instanceof Invalid
        && isDeepStrictEqual(error.faults, { number: "length" }) && leastDigits < MOST_DIGITS;
      if (!isTooShort) throw error;
      return this.#post(body, this.#number(MOST_DIGITS), headers);
    }
  }

  async #post(shown, number, headers) {
    const body = number === null ? shown : { ...shown, number };
    const answer = await this.#send({ method: "POST", path: "/login", body, headers }, 201);
    const answered = optional(answer, "number");
    if (answered !== null && !NUMBER.test(answered)) throw new OddAnswer("the number is none");
    // Without a number, no phone can answer.
    if (number !== null && answered !== null && answered !== number) {
      throw new OddAnswer("the number differs from the one that was asked for");
    }
    return answer;
  }

  #number(digits) {
    // The remainder of 128 random bits favours no number by more than 2^-108.
    const drawn = BigInt(`0x${this.#world.random(16).toString("hex")}`);
    return String(drawn % 10n ** BigInt(digits)).padStart(digits, "0");
  }

  /**
   * Waits for the decision and checks it. Let the user in only if it is `approved`.
   *
   * `within` is the time to wait in seconds, 0 for none; then the decision may be `open`. Without
   * it, outages and limits end the wait only with the challenge's life. An approval is returned
   * once: a second call for the same login throws ReceiptError.
   */
  async wait(login, options = {}) {
    requireNames(options, ["within"]);
    const { within = null } = options;
    if (within !== null && !(Number.isFinite(within) && within >= 0)) {
      throw new TypeError("within must be a number of seconds");
    }
    const { monotonic, pause } = this.#world;
    const end = monotonic() + (within ?? LONGEST_LIFE);
    for (;;) {
      const begun = monotonic();
      const hold = Math.floor(Math.max(0, Math.min(end - begun, LONGEST_HOLD)));
      let answer;
      try {
        answer = await this.state(login, { hold });
      } catch (error) {
        const seconds = error.retryAfter || PAUSE;
        const passes = error instanceof Limited || mayPass(error);
        if (!passes || within !== null || monotonic() + seconds > end) throw error;
        await pause(seconds);
        continue;
      }
      if (answer.login !== "wait" || hold === 0 || monotonic() >= end) {
        return this.check(login, answer);
      }
      if (monotonic() - begun < SHORTEST_ROUND) await pause(SHORTEST_ROUND);
    }
  }

  /** The relay's own answer, unchecked: for a page that shows how things stand, and no more. */
  async state(login, options = {}) {
    requireNames(options, ["hold"]);
    const { challenge } = Login.fromJSON(login);
    const hold = Math.min(options.hold ?? 0, LONGEST_HOLD);
    const headers = hold > 0 ? { prefer: `wait=${hold}` } : {};
    const call = { method: "POST", path: "/auth", body: { challenge }, headers, hold };
    return requireWord(await this.#send(call, 200));
  }

  /**
   * Submits a code that the visitor typed. After a wrong one the decision is `open`.
   *
   * Throws ReceiptError unless the client accepts codes (`acceptCodes`).
   */
  async enter(login, code) {
    const { challenge } = Login.fromJSON(login);
    const body = { challenge, otp: code };
    const answer = await this.#send({ method: "POST", path: "/backup", body }, 200);
    if (answer.login === "failure" && !isGiven(answer.reason)) {
      return new Decision("open", {}, answer); // a wrong code: the challenge goes on
    }
    return this.check(login, answer);
  }

  /** Begins a factor now, or sends its code again. */
  async begin(login, factor) {
    const path = `/challenge/${segment(Login.fromJSON(login).challenge)}/factor`;
    await this.#send({ method: "POST", path, body: { factor } }, 202);
  }

  /** Cancels a login, for example because the visitor left. */
  async cancel(login) {
    const path = `/challenge/${segment(Login.fromJSON(login).challenge)}`;
    await this.#send({ method: "DELETE", path }, 204);
  }

  /**
   * Checks an answer that came another way: the data of the webhook `login.decided`. It spends the
   * request of an approval as the last step.
   */
  async check(login, answer) {
    const asked = Login.fromJSON(login);
    const word = requireWord(answer).login;
    const facts = textsOf(answer, ["factor", "proof", "assurance"]);
    if (word === "wait") return new Decision("open", facts, answer);
    if (word === "failure") {
      return new Decision("denied", { ...facts, ...textsOf(answer, ["reason"]) }, answer);
    }
    const { username, request } = asked;
    let pins = await this.store.pins(username);
    if (answer.proof === "signed" && !pins.has(answer.device)) {
      pins = await this.#pinsOfNewPhone(username, pins);
    }
    const wasPinned = await this.store.wasPinned(username);
    const known = { pins, wasPinned, now: this.#now() };
    const { claims, assurance } = checkSuccess(this.policy, asked, answer, known);
    if (await this.store.spend(request) !== true) throw new ReceiptError("request_used");
    const proved = { ...textsOf({ assurance }, ["assurance"]), userVerification: claims?.uv };
    return new Decision("approved", { ...facts, ...textsOf(answer, ["device"]), ...proved }, answer);
  }

  /** The phone may have been bound since: its binding proves its key now as well as then. */
  async #pinsOfNewPhone(username, pins) {
    if ((await this.store.secrets(username, this.#now())).length === 0) return pins;
    await this.confirm(username);
    return this.store.pins(username);
  }

  // Users

  /**
   * Whether a phone of the user was ever pinned, by the website's own store.
   *
   * Decide by this whether a user needs the second factor. The relay is not asked: neither a 404
   * nor the unbinding of a phone makes this false, only `forget` and `reset` do.
   */
  async isEnrolled(username) {
    return await this.store.wasPinned(requireName(username)) !== false;
  }

  /** The user's factors, as the relay says. Throws NotFound for an unknown user. */
  async factors(username) {
    return objects(await this.user(username), "factors").map((entry) => ({
      kind: text(entry, "kind"),
      state: text(entry, "state"),
      address: optional(entry, "address"),
      device: optional(entry, "device"),
    }));
  }

  /** The whole answer of GET /user/{username}. */
  async user(username) {
    return this.#send({ method: "GET", path: `/user/${segment(username)}` }, 200);
  }

  /** Unpins and unbinds a phone, for example a lost one. The user stays enrolled. */
  async unbind(username, device) {
    const path = `/user/${segment(username)}/devices/${segment(device)}`;
    // First here: the phone must not count even if the relay cannot be reached.
    await this.store.unpin(username, device);
    await this.#delete(path);
  }

  /** Deletes the user, at the relay and in the store. */
  async forget(username) {
    await this.#delete(`/user/${segment(username)}`);
    await this.store.forget(username);
  }

  /**
   * Forgets in the store that the user ever had a phone, so that the password alone suffices to
   * bind a first one. For a help desk that has identified the user.
   */
  async reset(username) {
    await this.store.forget(requireName(username));
  }

  /** Calls any other route of api.md, with the same retries and errors. */
  async call(method, path, body) {
    if (!/^[A-Za-z]+$/.test(method)) throw new TypeError("the method is no word");
    if (!/^\/[\x21-\x7e]*$/.test(path)) throw new TypeError("the path must begin with /");
    // By its name in capitals: what is repeated, and gets a key, depends on it.
    const call = { method: method.toUpperCase(), path, body: body ?? undefined };
    return this.#send(call, 200, 201, 202, 204);
  }

  async #delete(path) {
    try {
      await this.#send({ method: "DELETE", path }, 204);
    } catch (error) {
      // Deleted before, or by an attempt whose answer was lost.
      if (!(error instanceof NotFound)) throw error;
    }
  }

  #send(call, ...statuses) {
    return send(this.#world, call, ...statuses);
  }

  #now() {
    return Math.floor(this.#world.clock());
  }
}

function isGiven(value) {
  return value !== undefined && value !== null;
}

function isText(value) {
  return typeof value === "string";
}

/** Those of the answer's members with these names that are texts. */
function textsOf(answer, names) {
  return Object.fromEntries(names.filter((name) => isText(answer[name]))
    .map((name) => [name, answer[name]]));
}

function requireWord(answer) {
  if (!["success", "failure", "wait"].includes(answer?.login)) {
    throw new OddAnswer("login is none of success, failure and wait");
  }
  return answer;
}

/** What the phone shows and signs. A copy: a caller's later change must not reach the record. */
function shown(sent, { service, action, details, ip, userAgent }) {
  const values = {
    ...sent, service, action, details: details?.length ? details : undefined,
    ip: address(ip), user_agent: browser(userAgent),
  };
  const given = Object.entries(values).filter(([, value]) => isGiven(value));
  return JSON.parse(JSON.stringify(Object.fromEntries(given)));
}

/** What the relay is asked for beside it. */
function wishes({ factors, minAssurance, known, expiresIn }) {
  const values = {
    factors, min_assurance: minAssurance, known: known === true ? true : null,
    expires_in: expiresIn,
  };
  return Object.fromEntries(Object.entries(values).filter(([, value]) => isGiven(value)));
}
