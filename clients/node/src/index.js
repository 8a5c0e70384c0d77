/**
 * Second factors on phones for websites: the client of the Twoefay relay.
 *
 * Start with README.md: fifteen lines let a user in by a phone.
 */

export { KnownBrowsers } from "./browsers.js";
export { Enrolment } from "./enrolment.js";
export {
  AlreadyDecided, ApprovalRequired, BindingError, CheckError, CodesLocked, Conflict, Forbidden,
  IdempotencyMismatch, Internal, Invalid, Limited, Malformed, MethodNotAllowed, NotFound,
  OddAnswer, ReceiptError, Refused, RouteNotFound, ShownOnce, TooLarge, TwoefayError,
  Unauthenticated, Unavailable, Unreachable, UnsupportedType, WebhookError,
} from "./errors.js";
export { Decision, Login } from "./login.js";
export { Relay } from "./relay.js";
export { MySQLStore, PostgreSQLStore, SQLiteStore } from "./stores/databases.js";
export { FileStore } from "./stores/file.js";
export { MemoryStore } from "./stores/memory.js";
export { Webhooks } from "./webhooks.js";
