/** Second factors on phones for websites: the client of the Twoefay relay. Start with README.md. */

export type UserVerification = "none" | "passcode" | "biometric";
export type Assurance = "low" | "restricted" | "substantial" | "high";
/** An object of JSON. */
export type JSONObject = { [name: string]: unknown };
/** A public key of the curve P-256. */
export type JWK = { kty: string; crv: string; x: string; y: string };
/**
 * A phone as the store keeps it: its key. A web phone also has `app`, the origin of its page, and
 * `webauthn`, the credential of its owner.
 */
export type PhoneRecord = JWK & {
  app?: string;
  webauthn?: { rp: string; id: string; jwk: JWK };
};
type Awaitable<T> = T | Promise<T>;

// The relay

export interface RelayOptions {
  /** The relay's ca.pem, as a path or as bytes. No other authority is trusted. */
  ca: string | URL | Uint8Array;
  /** The website's certificate, such as shop.pem. */
  certificate: string | URL | Uint8Array;
  /** The website's private key, such as shop.key. */
  key: string | URL | Uint8Array;
  /** Keeps pinned keys and open requests. */
  store: Store;
  /** The name that phones must show. Without it, the operator may rename the website. */
  displayName?: string | null;
  leastUserVerification?: UserVerification;
  /** Seconds since the phone verified its user. The website's policy needs `max-uv-age` for it. */
  longestVerificationAge?: number | null;
  /**
   * Digits of the number that `ask` chooses, and the least that a receipt must have: 2 by default.
   * 0 only if the website's policy needs no number: then that of the relay is accepted.
   */
  leastDigits?: number;
  /** Trusts the relay for users of whom no phone was ever pinned. Gives up the strong form. */
  allowUnpinned?: boolean;
  /** Lets users in by codes, for which only the relay vouches. Gives up the strong form. */
  acceptCodes?: boolean;
  /** The phones that may be pinned: `any` by default. */
  phones?: "any" | "native" | "web";
  /**
   * The origin of the web app that the website chose. The QR code leads there, and web phones of
   * other pages are refused. Without it, any page is accepted that is not of the relay's host.
   */
  appOrigin?: string | null;
  /**
   * The website's own origins, where users type their passwords. A web phone's login counts as
   * `high` only if its page has none of their hosts; without them, as `substantial` at most.
   */
  loginOrigins?: readonly string[];
}

export type Policy = Readonly<
  Required<Omit<RelayOptions, "ca" | "certificate" | "key" | "store">> & {
    origin: string;
    website: string;
    audience: string;
  }
>;

export interface RegisterOptions {
  email?: string | null;
  phone?: string | null;
  displayName?: string | null;
  language?: string | null;
  /** A time of RFC 3339. */
  expiresAt?: string | null;
}

export interface AskOptions {
  /** The visitor's address, as it arrived: what is none is left out. */
  ip?: string | null;
  /** As the browser sent it. */
  userAgent?: string | null;
  service?: string | null;
  action?: string | null;
  /** The phone shows and signs them: a payment is approved with its amount. */
  details?: { label: string; value: string }[] | null;
  /** The website's own number, in place of random digits. */
  number?: string | null;
  factors?: string[] | null;
  minAssurance?: Assurance | null;
  /** Whether the browser is known: see `KnownBrowsers`. */
  known?: boolean;
  /** Seconds until the login expires. */
  expiresIn?: number | null;
  /** The visitor's Accept-Language, as it arrived. */
  acceptLanguage?: string | null;
  /** The language that the visitor chose on your pages, such as `de`. */
  chosenLanguage?: string | null;
}

/** The relay, for one website. Make one for the process, and share it. */
export class Relay {
  /** `origin` is the relay's, as in its settings: https://login.example.com:8080. */
  constructor(origin: string, options: RelayOptions);
  readonly policy: Policy;
  readonly store: Store;

  /** Registers a user, once. Throws Conflict if the relay knows the user: see `enrolment`. */
  register(username: string, options?: RegisterOptions): Promise<Enrolment>;
  /**
   * Makes another code, for a further phone or after the first has expired (ten minutes).
   *
   * Throws ApprovalRequired once the user has a factor: show its number, wait for its challenge,
   * and call again with it as `approval`.
   */
  enrolment(username: string, options?: { approval?: string | null }): Promise<Enrolment>;
  /**
   * Pins the phones that have read a code of this website, and returns their new ids.
   *
   * The list is empty until a phone has read the code. Throws BindingError if the relay reports a
   * key that no phone proved. `wait` calls it too, for a phone that was bound since.
   */
  confirm(username: string): Promise<string[]>;

  /** Opens a login, after the right password. Keep the result in the visitor's session. */
  ask(username: string, options?: AskOptions): Promise<Login>;
  /**
   * Waits for the decision and checks it. Let the user in only if it is `approved`.
   *
   * `within` is the time to wait in seconds, 0 for none; then the decision may be `open`. An
   * approval is returned once: a second call for the same login throws ReceiptError.
   */
  wait(login: LoginRecord, options?: { within?: number | null }): Promise<Decision>;
  /** The relay's own answer, unchecked: for a page that shows how things stand, and no more. */
  state(
    login: LoginRecord, options?: { hold?: number },
  ): Promise<JSONObject & { login: "success" | "failure" | "wait" }>;
  /**
   * Submits a code that the visitor typed. After a wrong one the decision is `open`.
   *
   * Throws ReceiptError unless the client accepts codes (`acceptCodes`).
   */
  enter(login: LoginRecord, code: string): Promise<Decision>;
  /** Begins a factor now, or sends its code again. */
  begin(login: LoginRecord, factor: string): Promise<void>;
  /** Cancels a login, for example because the visitor left. */
  cancel(login: LoginRecord): Promise<void>;
  /** Checks an answer that came another way: the data of the webhook `login.decided`. */
  check(login: LoginRecord, answer: JSONObject): Promise<Decision>;

  /**
   * Whether a phone of the user was ever pinned, by the website's own store.
   *
   * Decide by this whether a user needs the second factor. The relay is not asked: neither a 404
   * nor the unbinding of a phone makes this false, only `forget` and `reset` do.
   */
  isEnrolled(username: string): Promise<boolean>;
  /** The user's factors, as the relay says. Throws NotFound for an unknown user. */
  factors(username: string): Promise<Factor[]>;
  /** The whole answer of GET /user/{username}. */
  user(username: string): Promise<JSONObject>;
  /** Unpins and unbinds a phone, for example a lost one. The user stays enrolled. */
  unbind(username: string, device: string): Promise<void>;
  /** Deletes the user, at the relay and in the store. */
  forget(username: string): Promise<void>;
  /**
   * Forgets in the store that the user ever had a phone, so that the password alone suffices to
   * bind a first one. For a help desk that has identified the user.
   */
  reset(username: string): Promise<void>;
  /** Calls any other route of api.md: its path begins with `/`. The same retries and errors. */
  call(method: string, path: string, body?: JSONObject | null): Promise<JSONObject>;
  /** Closes idle connections now, and the others when their requests have ended. */
  close(): void;
}

/** A factor of a user: `push`, `pull`, `totp`, `hotp`, `sms`, `mail`, `recovery`, `operator`. */
export interface Factor {
  kind: string;
  state: string;
  address: string | null;
  device: string | null;
}

/** What the user needs to bind a phone. Show `qr` once, to the logged-in user, and log neither. */
export class Enrolment {
  private constructor();
  /** The user's id at the relay. */
  readonly token: string;
  /** The link for an app on the same device. Null if the relay mails the code. */
  get uri(): string | null;
  /** The QR code as SVG, to stand in HTML. Throws if `uri` is null. */
  get qr(): string;
  /** The masked address to which the relay mails the code. */
  readonly sentTo: string | null;
  /** `identity` until an operator has confirmed who the user is. */
  readonly awaits: string | null;
  readonly expiresAt: string | null;
}

/** The data of a login, as an object of JSON: what a session makes of a `Login`. */
export interface LoginRecord {
  challenge: string;
  /** Show it to the visitor, who enters it on the phone. Null if no phone can answer. */
  number: string | null;
  /** Seconds since 1970. */
  askedAt: number;
  sent: JSONObject;
  factors: string[] | null;
  minAssurance: Assurance | null;
  factor: string | null;
  hasPhone: boolean;
  codesLocked: boolean;
  missing: string[];
}

/** The website's own record of one login. Keep it in the visitor's session until it ends. */
export class Login implements LoginRecord {
  private constructor();
  challenge: string;
  number: string | null;
  askedAt: number;
  sent: JSONObject;
  factors: string[] | null;
  minAssurance: Assurance | null;
  factor: string | null;
  hasPhone: boolean;
  codesLocked: boolean;
  missing: string[];
  get username(): string;
  get request(): string;
  /** The login of a record. All methods of `Relay` take records, too. */
  static fromJSON(value: unknown): Login;
}

/** How a login stands. Test `approved`: the decision itself is always true in JavaScript. */
export class Decision {
  private constructor();
  readonly state: "approved" | "denied" | "open";
  /** Why it was denied: `denied`, `fraud`, `expired`, … After a wrong code it is null. */
  readonly reason: string | null;
  readonly factor: string | null;
  readonly proof: string | null;
  readonly assurance: string | null;
  readonly device: string | null;
  /**
   * The phone's own word, from the checked receipt. That of a web phone counts only with a right
   * assertion, and as `passcode` at most.
   */
  readonly userVerification: UserVerification | null;
  get approved(): boolean;
  get ended(): boolean;
  /** The relay's whole answer, beyond what was checked. */
  get answer(): JSONObject;
}

// Stores

/** The store of a website. Each method is atomic, for all processes of the website. */
export interface Store {
  /** Stores the user's id at the relay; a later one replaces it. */
  addUser(username: string, token: string): Awaitable<void>;
  token(username: string): Awaitable<string | null>;
  /** Stores the `k` of an open enrolment. A user may have several. */
  addSecret(username: string, k: Uint8Array, now: number): Awaitable<void>;
  /** The user's `k`s of the last day: later a code that somebody kept must not count. */
  secrets(username: string, now: number): Awaitable<Uint8Array[]>;
  /**
   * Pins a key and deletes every `k` of the user. False, and nothing is changed, if this `k` is not
   * there any more, or if the phone has a key already: it is never replaced.
   */
  pin(username: string, device: string, jwk: PhoneRecord, k: Uint8Array): Awaitable<boolean>;
  /** The pinned keys of this user by device, and of nobody else. Unpinned ones are left out. */
  pins(username: string): Awaitable<Map<string, PhoneRecord>>;
  /** Whether a phone of this user was ever pinned, even if it was unpinned since. */
  wasPinned(username: string): Awaitable<boolean>;
  /**
   * Revokes a key for ever, but keeps its row: `wasPinned` must stay true. Unless the phone was
   * unpinned before, it also deletes every `k` of the user: the phone may have read one already.
   */
  unpin(username: string, device: string): Awaitable<void>;
  /** The same, for the user with this id at the relay; nothing if there is none. */
  unpinByToken(token: string, device: string): Awaitable<void>;
  /** Deletes everything about the user, also that a phone was pinned. */
  forget(username: string): Awaitable<void>;
  /** Stores the request of a new login. */
  open(request: string, now: number): Awaitable<void>;
  /** Removes a request. True only for the one call that removed it. */
  spend(request: string): Awaitable<boolean>;
  hasSeen(event: string): Awaitable<boolean>;
  /** Stores the id of a webhook that was handled. */
  see(event: string, now: number): Awaitable<void>;
}

declare abstract class AsyncStore implements Store {
  addUser(username: string, token: string): Promise<void>;
  token(username: string): Promise<string | null>;
  addSecret(username: string, k: Uint8Array, now: number): Promise<void>;
  secrets(username: string, now: number): Promise<Uint8Array[]>;
  pin(username: string, device: string, jwk: PhoneRecord, k: Uint8Array): Promise<boolean>;
  pins(username: string): Promise<Map<string, PhoneRecord>>;
  wasPinned(username: string): Promise<boolean>;
  unpin(username: string, device: string): Promise<void>;
  unpinByToken(token: string, device: string): Promise<void>;
  forget(username: string): Promise<void>;
  open(request: string, now: number): Promise<void>;
  spend(request: string): Promise<boolean>;
  hasSeen(event: string): Promise<boolean>;
  see(event: string, now: number): Promise<void>;
}

/** A store in memory. It forgets all pinned keys when the process ends: for tests and trials. */
export class MemoryStore implements Store {
  addUser(username: string, token: string): void;
  token(username: string): string | null;
  addSecret(username: string, k: Uint8Array, now: number): void;
  secrets(username: string, now: number): Uint8Array[];
  pin(username: string, device: string, jwk: PhoneRecord, k: Uint8Array): boolean;
  pins(username: string): Map<string, PhoneRecord>;
  wasPinned(username: string): boolean;
  unpin(username: string, device: string): void;
  unpinByToken(token: string, device: string): void;
  forget(username: string): void;
  open(request: string, now: number): void;
  spend(request: string): boolean;
  hasSeen(event: string): boolean;
  see(event: string, now: number): void;
}

/** A store in a directory of a local file system, for a website on one machine. */
export class FileStore extends AsyncStore {
  /** An absolute path, or a URL such as new URL("shop-store", import.meta.url). */
  constructor(directory: string | URL);
}

/** A store in a file of SQLite, for a website on one machine. */
export class SQLiteStore extends AsyncStore {
  /** A `Database` of better-sqlite3 or a `DatabaseSync` of node:sqlite, which nothing else uses. */
  constructor(database: {
    exec(statement: string): unknown;
    prepare(statement: string): {
      run(...values: any[]): { changes: number | bigint };
      all(...values: any[]): unknown[];
    };
  });
}

/** A store in PostgreSQL. */
export class PostgreSQLStore extends AsyncStore {
  /** A `Pool` of the package `pg`. */
  constructor(pool: {
    connect(): Promise<{
      query(statement: string, values?: any[]): Promise<{ rows: any[]; rowCount: number | null }>;
      release(fault?: any): void;
    }>;
  });
}

/** A store in MySQL or MariaDB. */
export class MySQLStore extends AsyncStore {
  /** A pool of `mysql2/promise`. */
  constructor(pool: {
    getConnection(): Promise<{
      beginTransaction(): Promise<unknown>;
      commit(): Promise<unknown>;
      rollback(): Promise<unknown>;
      execute(statement: string, values: any[]): Promise<any>;
      release(): void;
      destroy(): void;
    }>;
  });
}

// Webhooks and browsers

/** An event. Ignore types that you do not know: the relay may add some. */
export interface WebhookEvent {
  id: string;
  type: string;
  timestamp: string;
  data: JSONObject;
}

/** Header fields, of a request of Node or of `fetch`. */
export type HeaderFields =
  | { [name: string]: string | string[] | undefined }
  | { entries(): IterableIterator<[string, string]> };

/** Receives the relay's webhooks. */
export class Webhooks {
  /** `secrets` are the lines of shop.secret and, while the secret changes, shop.secret.new. */
  constructor(secrets: string[], options?: { store?: Store | null; clock?: () => number });
  /** The event of a webhook. Throws WebhookError: then answer 400, and do nothing else. */
  verify(headers: HeaderFields, body: Uint8Array): WebhookEvent;
  /**
   * Handles a webhook, and returns the status to answer: 204, or 400.
   *
   * `act` runs before the id is stored, so no event is lost. It may run twice if the process dies
   * in between: let it have the same effect then. If it throws, answer 500: the relay retries.
   */
  receive(
    headers: HeaderFields, body: Uint8Array, act: (event: WebhookEvent) => unknown,
  ): Promise<204 | 400>;
}

/** A cookie that keeps an attacker with a password from disturbing the owner's logins. */
export class KnownBrowsers {
  /** The Max-Age of the cookie, in seconds. */
  static readonly LIFE: number;
  /** `key` is a secret of the website, at least 32 bytes. */
  constructor(key: Uint8Array);
  /** The cookie of this user's browser: HttpOnly, Secure, SameSite=Lax, Max-Age=LIFE. */
  value(username: string, options?: { now?: number }): string;
  /** Whether the cookie was made for this user, and not before `notBefore`. */
  knows(value: unknown, username: string, options?: { now?: number; notBefore?: number }): boolean;
}

// Errors

/** The base of all errors of this package. Let nobody in after any of them. */
export class TwoefayError extends Error {
  /** The name of the error in all languages of the clients. */
  get word(): string;
}

/** The relay gave no answer. */
export class Unreachable extends TwoefayError {}

/** The answer is none of a relay: a proxy has answered, or the relay lies. It says nothing. */
export class OddAnswer extends TwoefayError {
  readonly status: number | null;
}

/** A check of this package failed: the relay may be dishonest. `reason` is a stable word. */
export class CheckError extends TwoefayError {
  readonly reason: string;
  readonly field: string | null;
}

/** The relay reports a success that the phone's receipt does not prove. */
export class ReceiptError extends CheckError {}
/** A phone's key is not proved by a binding under this website's `k`. */
export class BindingError extends CheckError {}
/** A webhook is not from the relay, or too old. Answer 400. */
export class WebhookError extends CheckError {}

/** The relay refused, with a problem document. Subclasses stand for its codes. */
export class Refused extends TwoefayError {
  readonly problem: JSONObject;
  readonly code: string;
  readonly status: number;
  readonly detail: string;
  /** The code of the fault of each wrong parameter. */
  readonly faults: { [parameter: string]: string };
  readonly requestId: string | null;
  /** Seconds. The client never sleeps for them in a visitor's request. */
  readonly retryAfter: number | null;
}

export class Malformed extends Refused {}
export class Invalid extends Refused {}
export class Unauthenticated extends Refused {}
export class Forbidden extends Refused {}
/** The user has to approve first: show `number`, wait for `challenge`, and call again with it. */
export class ApprovalRequired extends Refused {
  get challenge(): string;
  get number(): string | null;
}
/** Too many codes were wrong. Let the user approve with the phone. */
export class CodesLocked extends Refused {}
/** The user or challenge is unknown, or belongs to another website. */
export class NotFound extends Refused {}
/** The relay has no such route: a fault of this program or of the address, never of a user. */
export class RouteNotFound extends Refused {}
export class MethodNotAllowed extends Refused {}
/** The name, address or number is in use; or, with `retryAfter`, the same call still runs. */
export class Conflict extends Refused {}
export class AlreadyDecided extends Refused {}
/** The call was done, but its answer with the secret was lost. */
export class ShownOnce extends Refused {}
export class TooLarge extends Refused {}
export class UnsupportedType extends Refused {}
export class IdempotencyMismatch extends Refused {}
/** A limit is reached. Tell the visitor `retryAfter` seconds. */
export class Limited extends Refused {}
export class Internal extends Refused {}
export class Unavailable extends Refused {}
