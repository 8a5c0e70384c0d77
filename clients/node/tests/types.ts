/** A website in TypeScript: this file is only type-checked. Lines that must be wrong say so. */

import {
  ApprovalRequired, Decision, FileStore, KnownBrowsers, Limited, Login, MemoryStore, MySQLStore,
  PostgreSQLStore, Relay, SQLiteStore, Store, TwoefayError, Webhooks,
} from "twoefay";
import { SecondFactor, WaitingContext } from "twoefay/express";

const files = { ca: "ca.pem", certificate: "shop.pem", key: new Uint8Array() };
const relay = new Relay("https://localhost:8080", { ...files, store: new FileStore("/srv/store") });
export const choosy = new Relay("https://localhost:8080", {
  ...files, store: new MemoryStore(), phones: "web", appOrigin: "https://phone.example.net",
  loginOrigins: ["https://shop.example"],
});

export async function appsOf(store: Store): Promise<(string | undefined)[]> {
  return [...(await store.pins("ada")).values()].map((phone) => phone.app ?? phone.webauthn?.rp);
}

export async function logIn(session: { login?: unknown }): Promise<string | null> {
  const login = await relay.ask("ada", { ip: "192.0.2.7", details: [{ label: "a", value: "b" }] });
  session.login = login;
  const decision: Decision = await relay.wait(Login.fromJSON(session.login), { within: 0 });
  const state: "approved" | "denied" | "open" = decision.state;
  return decision.approved && state === "approved" ? login.username : null;
}

export async function enrol(): Promise<string> {
  try {
    const made = await relay.enrolment("ada", { approval: null });
    const uri: string | null = made.uri;
    return uri ?? made.qr;
  } catch (error) {
    if (error instanceof ApprovalRequired) return error.challenge + (error.number ?? "");
    if (error instanceof Limited) return String(error.retryAfter);
    return error instanceof TwoefayError ? error.word : "";
  }
}

declare const pool: any;
export const stores: Store[] = [
  new MemoryStore(), new FileStore(new URL("file:///srv/store")), new PostgreSQLStore(pool), new MySQLStore(pool),
  new SQLiteStore(pool),
];

export async function receive(request: { headers: { [name: string]: string | undefined } }) {
  const inbox = new Webhooks(["whsec_x"], { store: relay.store });
  return inbox.receive(request.headers, new Uint8Array(), (event) => event.data.token);
}

export const known: boolean = new KnownBrowsers(new Uint8Array(32)).knows(undefined, "ada");
export const factor = new SecondFactor(relay, {
  onApproved: (request, response, username) => response.redirect(303, `/${username}`),
  render: (context: WaitingContext) => context.message,
});

// @ts-expect-error: an option with this name does not exist
void relay.ask("ada", { minAssurence: "high" });
// @ts-expect-error: an assurance with this name does not exist
void relay.ask("ada", { minAssurance: "highest" });
// @ts-expect-error: phones with this name do not exist
void new Relay("https://localhost:8080", { ...files, store: new MemoryStore(), phones: "browser" });
// @ts-expect-error: a store is needed
void new Relay("https://localhost:8080", files);
// @ts-expect-error: a login is made by `ask`
void new Login();
// @ts-expect-error: the body must be bytes
void new Webhooks([""]).verify({}, "text");
