/**
 * What the waiting page needs beside its text: headers, and what the visitor is told.
 *
 * The page shows how a login stands by `state`, which is unchecked and lets nobody in. Only the
 * POST checks the receipt and lets the visitor in, so a request of another site cannot do it.
 */

import { randomBytes, timingSafeEqual } from "node:crypto";
import { CheckError, CodesLocked, Invalid, Limited, NotFound } from "./errors.js";
import { Login } from "./login.js";

export const TOKEN_NAME = "form_token";
const PAUSE = 5;

/** What the visitor is shown. */
export function makePage(message = "", options = {}) {
  const { status = 200, ended = false, retryAfter = null } = options;
  return { message, status, ended, retryAfter };
}

/** The page after a decision that is no approval. */
export function pageOfDecision(decision, isCode) {
  if (decision.ended) return makePage("The login was not approved.", { status: 403, ended: true });
  return makePage(isCode ? "This code is wrong." : "");
}

/** The page after an error. Nobody is let in, and `log` gets the reason. */
export function pageOfError(error, log) {
  if (error instanceof Limited) {
    const retryAfter = error.retryAfter || PAUSE;
    const message = `Too many attempts. Try again in ${retryAfter} seconds.`;
    return makePage(message, { status: 429, retryAfter });
  }
  if (error instanceof CodesLocked) {
    return makePage("No code is accepted at present. Answer on your phone.", { status: 403 });
  }
  if (error instanceof Invalid) return makePage("This input was not accepted.", { status: 400 });
  log(`twoefay: ${error.word}: ${error.message}`);
  if (error instanceof CheckError) {
    return makePage("The login could not be verified.", { status: 403, ended: true });
  }
  if (error instanceof NotFound) {
    return makePage("This login has ended. Log in again.", { status: 403, ended: true });
  }
  const message = "The second factor cannot be reached at present. Try again.";
  return makePage(message, { status: 503, retryAfter: PAUSE });
}

/** The login in the visitor's session. Its token proves that a form is of this login's page. */
export class Pending {
  constructor(login, token, kept) {
    this.login = login;
    this.token = token;
    this.kept = kept;
  }

  static begin(login, kept) {
    return new Pending(login, randomBytes(18).toString("base64url"), kept);
  }

  toJSON() {
    return { login: { ...this.login }, token: this.token, kept: this.kept };
  }

  /** What a session has kept; null if it has none. */
  static fromJSON(value) {
    try {
      if (!value) return null;
      return new Pending(Login.fromJSON(value.login), String(value.token), value.kept ?? {});
    } catch {
      return null; // another version of this package has kept it
    }
  }

  isOwn(token) {
    if (typeof token !== "string") return false;
    const [given, own] = [Buffer.from(token), Buffer.from(this.token)];
    return given.length === own.length && timingSafeEqual(given, own);
  }
}

/** A strict policy: nothing from elsewhere, no script but the one with this nonce. */
export function pageHeaders(nonce, { retryAfter }) {
  const policy = `default-src 'none'; script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}'; `
    + "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
  return {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": policy,
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    ...(retryAfter === null ? {} : { "retry-after": String(retryAfter) }),
  };
}

export function newNonce() {
  return randomBytes(16).toString("base64url");
}
