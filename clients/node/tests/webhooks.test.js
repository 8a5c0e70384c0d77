/** Webhooks by the rules of Standard Webhooks, and what is done with an event. */

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { MemoryStore, Webhooks } from "../src/index.js";
import { NOW } from "./worlds.js";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

function signed(body, id = "msg_1") {
  const key = Buffer.from(SECRET.slice("whsec_".length), "base64");
  const code = createHmac("sha256", key).update(`${id}.${NOW}.${body}`).digest("base64");
  return { "webhook-id": id, "webhook-timestamp": String(NOW), "webhook-signature": `v1,${code}` };
}

function event(type = "login.decided", data = {}) {
  return JSON.stringify({ type, timestamp: "2026-11-22T08:00:00.000Z", data });
}

function inbox(store = null) {
  return new Webhooks([SECRET], { store, clock: () => NOW });
}

test("fields of Node and of fetch are read", () => {
  const body = event("login.decided", { token: "t", name: "Zoë" });
  for (const fields of [signed(body), new Headers(signed(body))]) {
    const found = inbox().verify(fields, Buffer.from(body));
    assert.deepEqual([found.id, found.data], ["msg_1", { token: "t", name: "Zoë" }]);
  }
});

test("a repetition acts once", async () => {
  const acted = [], receiver = inbox(new MemoryStore()), body = event();
  for (let round = 0; round < 2; round++) {
    const act = (event) => acted.push(event);
    assert.equal(await receiver.receive(signed(body), Buffer.from(body), act), 204);
  }
  assert.equal(acted.length, 1);
});

test("a failed act runs again", async () => {
  const receiver = inbox(new MemoryStore()), body = event();
  let count = 0;
  const act = async () => {
    if (++count === 1) throw new Error("the database is away");
  };
  await assert.rejects(receiver.receive(signed(body), Buffer.from(body), act), /is away/);
  assert.equal(await receiver.receive(signed(body), Buffer.from(body), act), 204);
  assert.equal(count, 2);
});

test("a forged webhook never acts", async () => {
  const body = event();
  const forged = { ...signed(body), "webhook-id": "x" };
  const act = () => assert.fail("acted");
  assert.equal(await inbox(new MemoryStore()).receive(forged, Buffer.from(body), act), 400);
  const many = { ...signed(body), "webhook-signature": "v1, ".repeat(10_000) };
  assert.equal(await inbox(new MemoryStore()).receive(many, Buffer.from(body), act), 400);
  assert.equal(await inbox(new MemoryStore()).receive({}, Buffer.from(body), act), 400);
  // What Express makes of a request without a body, also of one whose signature is right.
  for (const empty of [{}, undefined]) {
    assert.equal(await inbox().receive({}, empty, act), 400);
    assert.equal(await inbox().receive(signed(""), empty, act), 400);
  }
});

test("an unbound phone is unpinned, and its user stays enrolled", async () => {
  const store = new MemoryStore();
  for (const name of ["ada", "bob"]) {
    store.addUser(name, `t-${name}`);
    store.addSecret(name, Buffer.from("k"), NOW);
    store.pin(name, "d1", { kty: "EC" }, Buffer.from("k"));
  }
  for (const token of ["t-nobody", "t-ada"]) {
    const body = event("device.unbound", { token, device: "d1" });
    assert.equal(await inbox(store).receive(signed(body, token), Buffer.from(body), () => {}), 204);
    assert.equal(store.pins("ada").size === 0, token === "t-ada");
  }
  assert(store.wasPinned("ada") && store.pins("bob").size === 1);
});

test("weak secrets and parsed bodies are refused", () => {
  for (const secrets of [[], [""], ["whsec_"], ["whsec_c2hvcnQ="], ["whsec_***"], SECRET]) {
    assert.throws(() => new Webhooks(secrets), TypeError);
  }
  for (const body of [{ type: "x" }, event()]) {
    assert.throws(() => inbox().verify(signed(event()), body), TypeError);
  }
});
