/**
 * Errors as types. Catch `TwoefayError` for all of them; let nobody in after any of them.
 *
 * Problems of the relay are told apart by their `code`, never by the status alone: an unknown route
 * is 404, too, and says nothing about a user. `word` is the name of an error in all languages of
 * the clients (clients/README.md).
 */

export const NUMBER = /^[0-9]{2,6}$/;
/** Of challenges, phones, users and webhooks. Others could lead to another route. */
export const ID = /^[A-Za-z0-9_-]{1,128}$/;

/** The base of all errors of this package. */
export class TwoefayError extends Error {
  static word = "error";

  get word() {
    return this.constructor.word;
  }

  get name() {
    return this.constructor.name;
  }
}

/** The relay gave no answer. */
export class Unreachable extends TwoefayError {
  static word = "unreachable";
}

/** The answer is none of a relay: a proxy has answered, or the relay lies. It says nothing. */
export class OddAnswer extends TwoefayError {
  static word = "odd_answer";

  constructor(what, status = null) {
    super(status === null ? what : `${what} (status ${status})`);
    this.status = status;
  }
}

/** A check of this package failed: the relay may be dishonest. `reason` is a stable word. */
export class CheckError extends TwoefayError {
  constructor(reason, field = null) {
    super(field === null ? reason : `${reason}: ${printable(field)}`);
    this.reason = reason;
    this.field = field;
  }
}

/** The relay reports a success that the phone's receipt does not prove. */
export class ReceiptError extends CheckError {
  static word = "receipt";
}

/** A phone's key is not proved by a binding under this website's `k`. */
export class BindingError extends CheckError {
  static word = "binding";
}

/** A webhook is not from the relay, or too old. Answer 400. */
export class WebhookError extends CheckError {
  static word = "webhook";
}

/** The relay refused, with a problem document. Subclasses stand for its codes. */
export class Refused extends TwoefayError {
  static word = "refused";
  /** The status that belongs to the code; 0 for codes that this package does not know. */
  static codeStatus = 0;

  constructor(problem, status, headers) {
    const detail = textOf(problem.detail);
    const faults = faultsOf(problem.errors);
    const requestId = textOf(headers["request-id"]) || null;
    const list = Object.entries(faults).map(([name, fault]) => `, ${name}: ${fault}`).join("");
    super(printable(`${status} ${problem.code}: ${detail}${list} (request ${requestId})`));
    this.problem = problem;
    this.code = problem.code;
    this.status = status;
    this.detail = detail;
    this.faults = faults;
    this.requestId = requestId;
    const wish = textOf(headers["retry-after"]);
    this.retryAfter = /^[0-9]{1,9}$/.test(wish) ? Number(wish) : null;
  }
}

export class Malformed extends Refused {
  static word = "malformed";
  static codeStatus = 400;
}

/** `faults` names each wrong parameter with the code of its fault. */
export class Invalid extends Refused {
  static word = "invalid";
  static codeStatus = 400;
}

export class Unauthenticated extends Refused {
  static word = "unauthenticated";
  static codeStatus = 401;
}

export class Forbidden extends Refused {
  static word = "forbidden";
  static codeStatus = 403;
}

/** The user has to approve first: show `number`, wait for `challenge`, and call again with it. */
export class ApprovalRequired extends Refused {
  static word = "approval_required";
  static codeStatus = 403;

  get challenge() {
    return matching(this.problem.challenge, ID) ?? "";
  }

  get number() {
    return matching(this.problem.number, NUMBER);
  }
}

/** Too many codes were wrong. Let the user approve with the phone. */
export class CodesLocked extends Refused {
  static word = "codes_locked";
  static codeStatus = 403;
}

/** The user or challenge is unknown, or belongs to another website. */
export class NotFound extends Refused {
  static word = "not_found";
  static codeStatus = 404;
}

/** The relay has no such route: a fault of this program or of the address, never of a user. */
export class RouteNotFound extends Refused {
  static word = "route_not_found";
  static codeStatus = 404;
}

export class MethodNotAllowed extends Refused {
  static word = "method_not_allowed";
  static codeStatus = 405;
}

/** The name, address or number is in use; or, with `retryAfter`, the same call still runs. */
export class Conflict extends Refused {
  static word = "conflict";
  static codeStatus = 409;
}

export class AlreadyDecided extends Refused {
  static word = "already_decided";
  static codeStatus = 409;
}

/** The call was done, but its answer with the secret was lost. */
export class ShownOnce extends Refused {
  static word = "shown_once";
  static codeStatus = 409;
}

export class TooLarge extends Refused {
  static word = "too_large";
  static codeStatus = 413;
}

export class UnsupportedType extends Refused {
  static word = "unsupported_type";
  static codeStatus = 415;
}

export class IdempotencyMismatch extends Refused {
  static word = "idempotency_mismatch";
  static codeStatus = 422;
}

/** A limit is reached. The client never sleeps for it: tell the visitor `retryAfter` seconds. */
export class Limited extends Refused {
  static word = "limited";
  static codeStatus = 429;
}

export class Internal extends Refused {
  static word = "internal";
  static codeStatus = 500;
}

export class Unavailable extends Refused {
  static word = "unavailable";
  static codeStatus = 503;
}

/** The type of each code. */
export const BY_CODE = new Map(
  [
    Malformed, Invalid, Unauthenticated, Forbidden, ApprovalRequired, CodesLocked, NotFound,
    RouteNotFound, MethodNotAllowed, Conflict, AlreadyDecided, ShownOnce, TooLarge,
    UnsupportedType, IdempotencyMismatch, Limited, Internal, Unavailable,
  ].map((kind) => [kind.word, kind]),
);

/** A member that can stand in a page or a path; null if it is anything else. */
function matching(value, pattern) {
  return typeof value === "string" && pattern.test(value) ? value : null;
}

// `String(value)` would throw for an object of JSON that has a member `toString`.
function textOf(value) {
  return typeof value === "string" ? value : "";
}

function faultsOf(errors) {
  const faults = Array.isArray(errors) ? errors : [];
  const pairs = faults.map((fault) => [textOf(fault?.parameter), textOf(fault?.code)]);
  return Object.fromEntries(pairs.filter(([name]) => name !== ""));
}

/** A text of the relay as one line of a log. */
function printable(text) {
  return text.replace(/\p{Cc}/gu, " ").slice(0, 1000);
}
