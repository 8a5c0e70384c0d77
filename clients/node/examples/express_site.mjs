/**
 * A website in Express whose users log in with a password and their phone.
 *
 * In a directory with this file, sessions.mjs, relay/ca.pem, shop.pem and shop.key:
 *
 *     npm install express ./files/twoefay-*.tgz
 *     node express_site.mjs https://localhost:8080
 */

import { timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { Conflict, FileStore, Relay, TwoefayError, Webhooks } from "twoefay";
import { SecondFactor } from "twoefay/express";
import { sessions } from "./sessions.mjs";

const PASSWORDS = new Map([["ada", "correct horse"], ["bob", "battery staple"]]); // your own check

const HELP = "No phone of yours counts here at present. Try again, or ask the help desk.";

const FORM = `
<form method="post" action="/login">
<input name="username"><input name="password" type="password"><button>Log in</button>
</form>
`;

/** Express 4 does not wait for promises: their errors must reach `next`. */
const waiting = (handle) => (request, response, next) => {
  handle(request, response).catch(next);
};

export function createApp({ express, origin, files = ".", store, passwords = PASSWORDS }) {
  const relay = new Relay(origin, {
    ca: `${files}/relay/ca.pem`,
    certificate: `${files}/shop.pem`,
    key: `${files}/shop.key`,
    store: store ?? new FileStore(resolve(files, "shop-store")),
  });
  const factor = new SecondFactor(relay, {
    onApproved(request, response, username) {
      request.session.user = username;
      response.redirect(303, "/");
    },
  });

  /**
   * The code for a user's first phone; null once a phone has read it.
   *
   * Never call it for a user who had a phone: who has only the password would get a code.
   */
  async function firstCode(username) {
    try {
      return await relay.register(username);
    } catch (error) {
      if (!(error instanceof Conflict)) throw error;
      return (await relay.confirm(username)).length > 0 ? null : relay.enrolment(username);
    }
  }

  /** Whether the user's phone is to be asked now. If not, the answer was sent. */
  async function hasPhone(username, response) {
    try {
      if (!await relay.isEnrolled(username)) {
        const code = await firstCode(username); // the first login: bind a phone
        if (code === null) return true;
        response.set("cache-control", "no-store").send(code.qr);
        return false;
      }
      if ((await relay.store.pins(username)).size > 0) return true;
      if ((await relay.confirm(username)).length > 0) return true;
    } catch (error) {
      if (!(error instanceof TwoefayError)) throw error;
      console.warn(`a phone cannot be bound: ${error}`);
    }
    response.status(403).send(HELP);
    return false;
  }

  const app = express();
  // Before any parser: a webhook is checked over its bytes.
  app.post("/webhook", express.raw({ type: () => true }), waiting(async (request, response) => {
    const secrets = [readFileSync(`${files}/shop.secret`, "utf8")];
    const inbox = new Webhooks(secrets, { store: relay.store });
    const act = (event) => console.info(event.type);
    response.status(await inbox.receive(request.headers, request.body, act)).end();
  }));
  app.use(sessions);
  app.use(express.urlencoded({ extended: false }));
  app.use(factor.path, factor.router);

  app.get("/", (request, response) => {
    const { user } = request.session;
    response.send(user === undefined ? FORM : `Welcome, ${user}`);
  });

  app.post("/login", waiting(async (request, response) => {
    const { username, password } = request.body ?? {};
    if (!isRight(passwords, username, password)) {
      return response.status(403).send("Wrong name or password");
    }
    if (await hasPhone(username, response)) {
      await factor.start(request, response, username, { service: "Shop" });
    }
  }));
  return { app, relay };
}

function isRight(passwords, username, password) {
  const right = passwords.get(username);
  if (right === undefined || typeof password !== "string") return false;
  const [given, own] = [Buffer.from(password), Buffer.from(right)];
  return given.length === own.length && timingSafeEqual(given, own);
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { default: express } = await import("express");
  const [origin = "https://localhost:8080", files = "."] = process.argv.slice(2);
  const { app } = createApp({ express, origin, files });
  app.listen(3000, "127.0.0.1", () => console.info("http://localhost:3000"));
}
