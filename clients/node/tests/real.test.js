/** The whole conversation with a real relay and a real phone. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import {
  ApprovalRequired, Conflict, FileStore, Invalid, MemoryStore, NotFound, ReceiptError, Relay,
  Webhooks,
} from "../src/index.js";
import { lacksPrograms, RealRelay } from "./real.js";

const BROWSER = "Mozilla/5.0 (X11; Linux x86_64) Firefox/144.0";

describe("a real relay", { skip: lacksPrograms }, () => {
  let real;
  const relays = [];

  before(async () => (real = await RealRelay.start()));
  after(async () => {
    for (const relay of relays) relay.close();
    await real.end();
  });

  function make(store, options = {}, website = "shop") {
    const relay = new Relay(real.origin, { ...real.options(store, website), ...options });
    relays.push(relay);
    return relay;
  }

  async function enrolled(username, store = new MemoryStore()) {
    const relay = make(store);
    await real.enrol((await relay.register(username)).uri, username);
    assert.equal((await relay.confirm(username)).length, 1);
    return relay;
  }

  const isRefused = (reason) => (error) => error instanceof ReceiptError && error.reason === reason;
  const approve = (login, phone) => real.answer("approve", login.challenge, login.number, phone);

  test("a login is approved once", async () => {
    const store = new FileStore(join(real.directory, "store"));
    const relay = make(store);
    const made = await relay.register("ada", { email: "ada@example.com" });
    assert(made.qr.startsWith("<svg") && !await relay.isEnrolled("ada"));
    assert.deepEqual(await relay.confirm("ada"), []);
    await real.enrol(made.uri, "ada");
    const login = await relay.ask("ada", {
      ip: "192.0.2.7", userAgent: BROWSER, service: "Payments", action: "Pay",
      details: [{ label: "amount", value: "EUR 40.00" }, { label: "to", value: "Café Zoë" }],
    });
    assert.equal((await relay.wait(login, { within: 0 })).state, "open");
    assert.equal(await approve(login, "ada"), 0);
    const decision = await relay.wait(login); // it also pins the phone, which was bound since
    assert(decision.approved);
    assert.deepEqual([decision.proof, decision.userVerification], ["signed", "none"]);
    assert(await relay.isEnrolled("ada"));
    assert.deepEqual(await store.secrets("ada", Date.now() / 1000), []);
    await assert.rejects(relay.wait(login), isRefused("request_used"));
    assert.deepEqual((await relay.factors("ada")).map(({ kind }) => kind), ["pull", "mail"]);
  });

  test("two that wait at once let in once", async () => {
    const relay = await enrolled("una");
    const login = await relay.ask("una");
    const waiting = Promise.allSettled([relay.wait(login), relay.wait(login)]);
    assert.equal(await approve(login, "una"), 0);
    const ends = (await waiting).map(({ value, reason }) => value?.state ?? reason.reason);
    assert.deepEqual(ends.sort(), ["approved", "request_used"]);
  });

  test("waiting ends with the answer", async () => {
    const relay = await enrolled("bob");
    const login = await relay.ask("bob");
    const waiting = relay.wait(login);
    assert.equal(await real.answer("deny", login.challenge, null, "bob"), 0);
    const decision = await waiting;
    assert.deepEqual([decision.state, decision.reason], ["denied", "denied"]);
  });

  test("a wrong number is denied", async () => {
    const relay = await enrolled("cleo");
    const login = await relay.ask("cleo");
    const wrong = login.number === "11" ? "12" : "11";
    assert.equal(await real.answer("approve", login.challenge, wrong, "cleo"), 1);
    assert.equal((await relay.wait(login)).reason, "wrong_number");
  });

  test("texts of a browser refuse no login", async () => {
    const relay = await enrolled("dora");
    for (const userAgent of [
      "", "Evil\u202e\u200b\0/1\u3164", "x".repeat(9000), "\u{e0100}\ufe0f", "Ünïcödé 😀",
    ]) {
      const login = await relay.ask("dora", { ip: "10.0.0.1:5555", userAgent });
      assert.equal(await approve(login, "dora"), 0);
      assert((await relay.wait(login)).approved);
    }
  });

  test("a renamed website still lets in", async () => {
    const relay = await enrolled("emil");
    await real.operate("website", "edit", "shop", "--display-name", "The Better Shop");
    const login = await relay.ask("emil");
    assert.equal(await approve(login, "emil"), 0);
    assert((await relay.wait(login)).approved);
  });

  test("a user without a pinned phone is not let in", async () => {
    const store = new MemoryStore();
    const first = await enrolled("fay", store);
    store.unpin("fay", (await first.user("fay")).devices[0].device);
    for (const [allowUnpinned, isReset] of [[false, false], [true, false], [true, true]]) {
      const relay = make(store, { allowUnpinned });
      if (isReset) await relay.reset("fay");
      assert.equal(await relay.isEnrolled("fay"), !isReset);
      const login = await relay.ask("fay");
      assert.equal(await approve(login, "fay"), 0);
      if (isReset) assert((await relay.wait(login)).approved);
      else await assert.rejects(relay.wait(login), isRefused("unknown_device"));
    }
  });

  test("a further phone needs an approval", async () => {
    const relay = await enrolled("gil");
    const refusal = await relay.enrolment("gil").catch((error) => error);
    assert(refusal instanceof ApprovalRequired);
    assert.equal(await approve(refusal, "gil"), 0);
    const made = await relay.enrolment("gil", { approval: refusal.challenge });
    await real.enrol(made.uri, "gil2");
    const [device] = await relay.confirm("gil");
    await relay.unbind("gil", device);
    await relay.unbind("gil", device);
    assert.equal((await relay.store.pins("gil")).size, 1);
  });

  test("refusals are types", async () => {
    const relay = make(new MemoryStore());
    await relay.register("hal");
    await assert.rejects(relay.register("hal"), Conflict);
    assert((await relay.enrolment("hal")).uri);
    await assert.rejects(relay.factors("nobody"), NotFound);
    const isService = (error) => error instanceof Invalid && "service" in error.faults;
    await assert.rejects(relay.ask("hal", { service: "x".repeat(65) }), isService);
    await relay.forget("hal");
    await relay.forget("hal");
  });

  test("codes count only if they are accepted", async () => {
    const store = new MemoryStore();
    const relay = await enrolled("ida", store);
    const path = "/user/ida/recovery-codes";
    const refusal = await relay.call("POST", path, {}).catch((error) => error);
    assert.equal(await approve(refusal, "ida"), 0);
    const { codes } = await relay.call("POST", path, { approval: refusal.challenge });
    await assert.rejects(relay.enter(await relay.ask("ida"), codes[0]), isRefused("not_signed"));
    const trusting = make(store, { acceptCodes: true });
    const decision = await trusting.enter(await trusting.ask("ida"), codes[1]);
    assert(decision.approved && decision.proof === "code");
    const login = await relay.ask("ida");
    assert.equal((await relay.enter(login, "aaaa-aaaa-aaaa-aaaa")).state, "open");
    await relay.cancel(login);
    assert.equal((await relay.wait(login)).reason, "cancelled");
  });

  test("webhooks arrive and are checked", async () => {
    const store = new MemoryStore(), events = [], statuses = [];
    let secret, arrived = () => {};
    const receiver = createServer(async (request, response) => {
      const parts = [];
      for await (const part of request) parts.push(part);
      const inbox = new Webhooks([secret], { store });
      const act = (event) => void events.push(event);
      statuses.push(await inbox.receive(request.headers, Buffer.concat(parts), act));
      response.writeHead(statuses.at(-1)).end();
      arrived();
    }).listen(0, "127.0.0.1");
    await once(receiver, "listening");
    const next = async () => {
      while (events.length === 0) await new Promise((go) => (arrived = go));
      return events.shift();
    };
    const url = `http://127.0.0.1:${receiver.address().port}/twoefay`;
    await real.operate("website", "add", "news", "--webhook", url);
    secret = readFileSync(join(real.directory, "news.secret"), "utf8");
    const relay = make(store, {}, "news");
    await real.enrol((await relay.register("lea")).uri, "lea");
    assert.equal((await next()).type, "device.bound");
    const login = await relay.ask("lea");
    assert.equal(await approve(login, "lea"), 0);
    const event = await next();
    assert.deepEqual([event.type, event.id], ["login.decided", login.challenge]);
    // As `wait` would have, and only once.
    assert((await relay.check(login, event.data)).approved);
    await assert.rejects(relay.wait(login), isRefused("request_used"));
    const [device] = store.pins("lea").keys();
    await relay.call("DELETE", `/user/lea/devices/${device}`);
    assert.equal((await next()).type, "device.unbound");
    assert.equal(store.pins("lea").size, 0);
    receiver.close();
    receiver.closeAllConnections();
    assert.deepEqual(new Set(statuses), new Set([204]));
  });

  test("waiting survives a restart", async () => {
    const relay = await enrolled("kim");
    const login = await relay.ask("kim");
    await real.stop();
    const waiting = relay.wait(login);
    await real.start();
    assert.equal(await approve(login, "kim"), 0);
    assert((await waiting).approved);
  });
});
