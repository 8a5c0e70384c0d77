/**
 * The second factor for Express: a router with the waiting page.
 *
 *     const factor = new SecondFactor(relay, { onApproved: letIn });
 *     app.use(factor.path, factor.router);
 *
 * After the right password, `await factor.start(request, response, username)`. `letIn(request,
 * response, username, kept)` runs after the phone has approved and the receipt was checked; it
 * fills the session, which is new then. Sessions are those of express-session or cookie-session.
 */

import { parse } from "node:querystring";
import { AlreadyDecided, NotFound, ReceiptError, TwoefayError } from "./errors.js";
import {
  makePage, newNonce, pageHeaders, pageOfDecision, pageOfError, Pending, TOKEN_NAME,
} from "./pages.js";
import { requireNames } from "./policy.js";
import { waitingPage } from "./waiting.js";

const SESSION_KEY = "twoefay";
const MOST_FORM_BYTES = 16_384;
/** Browsers drop longer cookies without a word. The rest is for the name. */
const MOST_COOKIE_BYTES = 4_096 - 64;

/** The second factor of an Express application. */
export class SecondFactor {
  #onApproved;
  #home;
  #render;
  #log;

  /**
   * `path` is where the router stands. `home` is the page for a visitor who has no login to wait
   * for, or whose login was let in already. `render` replaces the page, and `log` console.warn.
   */
  constructor(relay, options) {
    requireNames(options, ["onApproved", "path", "home", "render", "log"]);
    const { onApproved, path = "/second-factor", home = "/" } = options;
    if (typeof onApproved !== "function") throw new TypeError("the option onApproved is missing");
    this.relay = relay;
    this.path = path;
    this.#onApproved = onApproved;
    this.#home = home;
    this.#render = options.render ?? waitingPage;
    this.#log = options.log ?? ((line) => console.warn(line));
  }

  /**
   * Asks the user's phone, and shows the waiting page. `asked` are options of `Relay.ask`; `kept`
   * is an object of JSON for `onApproved`, such as the page to show then.
   */
  async start(request, response, username, asked = {}, kept = {}) {
    let login;
    try {
      login = await this.relay.ask(username, {
        ip: request.ip,
        userAgent: request.headers["user-agent"],
        acceptLanguage: request.headers["accept-language"],
        ...asked,
      });
    } catch (error) {
      if (!(error instanceof TwoefayError)) throw error;
      return this.#show(request, response, null, pageOfError(error, this.#log));
    }
    // A new session: what somebody else has put into this browser must not be logged in.
    await renewSession(request);
    request.session[SESSION_KEY] = Pending.begin(login, kept).toJSON();
    requireFit(request.session);
    response.redirect(303, `${this.path}/`);
  }

  /** The router, for `app.use(factor.path, factor.router)`. */
  get router() {
    return (request, response, next) => {
      const routes = {
        "GET /": this.#page, "POST /": this.#finish, "GET /state": this.#state,
      };
      const route = routes[`${request.method} ${request.path}`];
      if (!route) return next();
      if (!request.session) return next(new Error("the second factor needs sessions"));
      route.call(this, request, response).catch(next);
    };
  }

  async #page(request, response) {
    const pending = pendingOf(request);
    if (pending === null) return response.redirect(303, this.#home);
    this.#show(request, response, pending, makePage());
  }

  async #state(request, response) {
    const pending = pendingOf(request);
    response.set("cache-control", "no-store");
    if (pending === null) return response.json({ ended: true });
    try {
      const { login } = await this.relay.state(pending.login);
      response.json({ ended: login !== "wait" });
    } catch (error) {
      if (!(error instanceof TwoefayError)) throw error;
      // The relay keeps a challenge for some time after its end: the form then says that it ended.
      if (error instanceof NotFound) return response.json({ ended: true });
      response.status(503).json({ ended: false });
    }
  }

  async #finish(request, response) {
    const pending = pendingOf(request);
    // The second of two submissions: the first has let the visitor in, or ended the login.
    if (pending === null) return response.redirect(303, this.#home);
    const form = await readForm(request);
    if (!pending.isOwn(form[TOKEN_NAME])) {
      const page = makePage("This page was out of date. Try again.", { status: 403 });
      return this.#show(request, response, pending, page);
    }
    const code = typeof form.code === "string" ? form.code.trim() : "";
    let decision;
    try {
      decision = await this.#decide(pending.login, code);
    } catch (error) {
      if (!(error instanceof TwoefayError)) throw error;
      // Another submission of this page was let in at the same time. Its session must stay.
      const isDouble = error instanceof ReceiptError && error.reason === "request_used";
      if (isDouble) return response.redirect(303, this.#home);
      return this.#show(request, response, pending, pageOfError(error, this.#log));
    }
    if (!decision.approved) {
      return this.#show(request, response, pending, pageOfDecision(decision, code !== ""));
    }
    await renewSession(request);
    await this.#onApproved(request, response, pending.login.username, pending.kept);
  }

  async #decide(login, code) {
    try {
      if (code !== "") return await this.relay.enter(login, code);
    } catch (error) {
      // Meanwhile the phone has answered, or the same code was submitted twice.
      if (!(error instanceof AlreadyDecided)) throw error;
    }
    return this.relay.wait(login, { within: 0 });
  }

  #show(request, response, pending, page) {
    const ended = page.ended || pending === null;
    if (ended && request.session?.[SESSION_KEY]) delete request.session[SESSION_KEY];
    const nonce = newNonce();
    response.status(page.status).set(pageHeaders(nonce, page)).send(this.#render({
      number: pending?.login.number ?? null,
      tokenName: TOKEN_NAME,
      token: pending?.token ?? "",
      message: page.message,
      ended,
      nonce,
      stateURL: `${this.path}/state`,
      codes: this.relay.policy.acceptCodes,
    }));
  }
}

function pendingOf(request) {
  return Pending.fromJSON(request.session[SESSION_KEY]);
}

/** Replaces the session by an empty one with another id. */
async function renewSession(request) {
  if (!request.session) throw new Error("the second factor needs sessions");
  if (typeof request.session.regenerate !== "function") {
    request.session = {}; // cookie-session has no ids
    return;
  }
  await new Promise((resolve, reject) => {
    request.session.regenerate((error) => (error ? reject(error) : resolve()));
  });
}

/** Refuses a session that cookie-session would send, and no browser would keep. */
function requireFit(session) {
  if (typeof session.regenerate === "function") return;
  const size = Buffer.from(JSON.stringify(session)).toString("base64").length;
  if (size > MOST_COOKIE_BYTES) throw new Error("the login does not fit into a cookie");
}

/** The fields of the form, also if no parser of the application has read it. */
async function readForm(request) {
  // A parser of another type leaves the request unread, but may have made an empty body.
  if (request.readableEnded || request.body?.[TOKEN_NAME] !== undefined) return request.body ?? {};
  const parts = [];
  let size = 0;
  for await (const part of request) {
    size += part.length;
    if (size > MOST_FORM_BYTES) return {};
    parts.push(part);
  }
  return parse(Buffer.concat(parts).toString());
}
