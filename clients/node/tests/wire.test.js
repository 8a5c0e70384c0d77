/** Connections, against a relay that is an HTTP/2 server of this process. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { constants, createSecureServer } from "node:http2";
import { connect, createServer } from "node:net";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { MemoryStore, OddAnswer, Relay, Unreachable } from "../src/index.js";
import { Wire } from "../src/wire.js";
import { makeAuthority } from "./authority.js";

const TIMES = { answer: 15, connect: 5, idle: 30 };
const USER = JSON.stringify({ token: "t", factors: [], devices: [] });
const GET = { method: "GET", path: "/user/ada", headers: {} };
let authority, other;

before(() => {
  authority = makeAuthority();
  other = makeAuthority();
});
after(() => {
  for (const { directory } of [authority, other]) rmSync(directory, { recursive: true });
});

/** Starts a server that calls `serve(stream, headers)`; it ends with the test. */
async function start(context, serve, options = {}) {
  const { cert, key } = (options.authority ?? authority).read("localhost");
  const server = createSecureServer({
    cert, key, ca: authority.ca, requestCert: true, rejectUnauthorized: true, ...options,
  });
  const sessions = new Set(), sockets = new Set();
  server.on("session", (session) => sessions.add(session));
  server.on("connection", (socket) => sockets.add(socket));
  server.on("stream", (stream, headers) => {
    stream.on("error", () => {});
    serve(stream, headers);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  context.after(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  return { origin: `https://localhost:${server.address().port}`, server, sessions, sockets };
}

function relayAt(context, origin, store = new MemoryStore()) {
  const { at } = authority;
  const relay = new Relay(origin, {
    ca: at("ca.pem"), certificate: at("shop.pem"), key: at("shop.key"), store,
  });
  context.after(() => relay.close());
  return relay;
}

function wireAt(context, origin, times = TIMES) {
  const wire = new Wire(origin, { ca: authority.ca, ...authority.read("shop") }, times);
  context.after(() => wire.close());
  return wire;
}

function answer(stream, body = USER, headers = {}) {
  stream.respond({ ":status": 200, "content-type": "application/json", ...headers });
  stream.end(body);
}

test("a request has the form of the API, and proves who asks", async (context) => {
  const seen = [];
  const { origin } = await start(context, async (stream, headers) => {
    const parts = [];
    for await (const part of stream) parts.push(part);
    const { subject } = stream.session.socket.getPeerCertificate();
    seen.push({ headers, body: Buffer.concat(parts).toString(), subject });
    answer(stream, '{"login": "wait"}');
  });
  const relay = relayAt(context, origin);
  assert.equal(relay.policy.audience, `${origin}#shop`);
  await relay.call("POST", "/auth", { challenge: "c" });
  await relay.user("zoë");
  const [first, second] = seen;
  assert.equal(first.body, '{"challenge":"c"}');
  assert.equal(first.subject.CN, "shop");
  assert.equal(first.headers["content-type"], "application/json");
  assert.equal(first.headers["accept-encoding"], "identity");
  assert.equal(second.headers[":path"], "/user/zo%C3%AB");
  assert.equal(second.headers["content-type"], undefined);
});

test("held requests share connections, within the limit of the relay", async (context) => {
  const held = [];
  const { origin, sessions } = await start(context, (stream, headers) => {
    if (headers[":path"] === "/first") return answer(stream);
    held.push(stream);
    if (held.length === 25) held.forEach((each) => answer(each));
  }, { settings: { maxConcurrentStreams: 10 } });
  const wire = wireAt(context, origin);
  await wire.exchange({ ...GET, path: "/first" }); // it brings the limit, too
  const asked = Array.from({ length: 25 }, () => wire.exchange(GET));
  for (const { status } of await Promise.all(asked)) assert.equal(status, 200);
  assert.equal(sessions.size, 3);
});

test("a connection that the relay ends is replaced", async (context) => {
  const { origin, sessions } = await start(context, (stream) => answer(stream));
  const wire = wireAt(context, origin);
  await wire.exchange(GET);
  await wire.exchange(GET);
  assert.equal(sessions.size, 1);
  const [first] = sessions;
  first.goaway(constants.NGHTTP2_NO_ERROR);
  first.close();
  await once(first, "close");
  assert.equal((await wire.exchange(GET)).status, 200);
  assert.equal(sessions.size, 2);
});

test("an answer that was cut off is none, and is asked for again", async (context) => {
  const disconnect = (sockets) => sockets.forEach((socket) => socket.destroy());
  const cuts = [
    (stream, sockets) => disconnect(sockets),
    (stream) => stream.close(constants.NGHTTP2_INTERNAL_ERROR),
    (stream, sockets) => {
      stream.respond({ ":status": 200, "content-type": "application/json" });
      stream.write(USER.slice(0, 9), () => disconnect(sockets));
    },
    (stream) => {
      stream.respond({ ":status": 200, "content-length": String(USER.length) });
      stream.write(USER.slice(0, 9), () => stream.close(constants.NGHTTP2_NO_ERROR));
    },
  ];
  for (const cut of cuts) {
    let count = 0;
    const { origin, sockets } = await start(context, (stream) => {
      if (++count % 2 === 0) answer(stream);
      else cut(stream, sockets);
    });
    await assert.rejects(wireAt(context, origin).exchange(GET), Unreachable, String(cut));
    count = 0;
    assert.equal((await relayAt(context, origin).user("ada")).token, "t");
    assert.equal(count, 2);
  }
});

test("an endless answer ends", async (context) => {
  const { origin } = await start(context, (stream) => {
    stream.respond({ ":status": 200, "content-type": "application/json" });
    const more = () => {
      while (!stream.destroyed && stream.write(" ".repeat(65_536)));
    };
    stream.on("drain", more);
    more();
  });
  await assert.rejects(wireAt(context, origin).exchange(GET), /too long/);
});

test("a silent relay is given up, and its connection too", async (context) => {
  let isSilent = true;
  const { origin, sessions } = await start(context, (stream) => {
    if (!isSilent) answer(stream);
  });
  const wire = wireAt(context, origin, { ...TIMES, answer: 0.2 });
  await assert.rejects(wire.exchange(GET), Unreachable);
  isSilent = false;
  const patient = wireAt(context, origin);
  assert.equal((await patient.exchange(GET)).status, 200);
  const before = sessions.size;
  await wire.exchange(GET).catch(() => {}); // in time or not: over a new connection
  assert.equal(sessions.size, before + 1);
});

test("a port that accepts and says nothing is given up", async (context) => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const sockets = new Set();
  server.on("connection", (socket) => sockets.add(socket.on("error", () => {})));
  context.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const origin = `https://localhost:${server.address().port}`;
  const wire = wireAt(context, origin, { ...TIMES, connect: 0.1 });
  await assert.rejects(wire.exchange(GET), Unreachable);
});

test("an idle connection is closed", async (context) => {
  const { origin, sessions } = await start(context, (stream) => answer(stream));
  await wireAt(context, origin, { ...TIMES, idle: 0.05 }).exchange(GET);
  const [session] = sessions;
  if (!session.closed) await once(session, "close");
});

test("nobody at the port is unreachable", async (context) => {
  const { origin, server } = await start(context, () => {});
  server.close();
  await once(server, "close");
  await assert.rejects(wireAt(context, origin).exchange(GET), /ECONNREFUSED/);
});

test("another authority or name is refused, whatever the environment says", async (context) => {
  const foreign = await start(context, (stream) => answer(stream), { authority: other });
  const own = await start(context, (stream) => answer(stream));
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
  context.after(() => delete process.env.NODE_TLS_REJECT_UNAUTHORIZED);
  const byAddress = own.origin.replace("localhost", "127.0.0.1");
  for (const origin of [foreign.origin, byAddress]) {
    await assert.rejects(wireAt(context, origin).exchange(GET), Unreachable, origin);
  }
  assert.equal((await wireAt(context, own.origin).exchange(GET)).status, 200);
});

test("an idle connection does not keep a program running", async (context) => {
  const { origin } = await start(context, (stream) => answer(stream));
  const index = new URL("../src/index.js", import.meta.url).href;
  const program = `
    import { MemoryStore, Relay } from ${JSON.stringify(index)};
    const at = ${JSON.stringify(authority.directory)};
    const relay = new Relay(${JSON.stringify(origin)}, { ca: at + "/ca.pem",
      certificate: at + "/shop.pem", key: at + "/shop.key", store: new MemoryStore() });
    console.log((await relay.user("ada")).token);`;
  const words = ["--input-type=module", "--eval", program];
  const { stdout } = await promisify(execFile)(process.execPath, words);
  assert.equal(stdout, "t\n");
});

test("a dead connection does not keep a program running", async (context) => {
  let isDead = false;
  const { server } = await start(context, (stream) => {
    answer(stream);
    isDead = true;
  });
  // A host that has died takes nothing and ends nothing: what comes after the answer gets lost.
  const host = createServer({ allowHalfOpen: true }, (socket) => {
    const upstream = connect(server.address().port, "127.0.0.1");
    upstream.on("data", (part) => socket.write(part));
    socket.on("data", (part) => isDead || upstream.write(part));
    for (const each of [socket, upstream]) each.on("error", () => {});
    context.after(() => [socket, upstream].forEach((each) => each.destroy()));
  });
  host.listen(0, "127.0.0.1");
  await once(host, "listening");
  context.after(() => host.close());
  const wire = new URL("../src/wire.js", import.meta.url).href;
  const program = `
    import { readFileSync } from "node:fs";
    import { Wire } from ${JSON.stringify(wire)};
    const file = (name) => readFileSync(${JSON.stringify(authority.directory)} + "/" + name);
    const tls = { ca: file("ca.pem"), cert: file("shop.pem"), key: file("shop.key") };
    const times = { answer: 15, connect: 15, idle: 30 };
    const wire = new Wire("https://localhost:${host.address().port}", tls, times);
    const get = { method: "GET", path: "/user/ada", headers: {} };
    console.log((await wire.exchange(get)).status);
    times.answer = 0.1;
    await wire.exchange(get).catch((error) => console.log(error.word));`;
  const words = ["--input-type=module", "--eval", program];
  const { stdout } = await promisify(execFile)(process.execPath, words, { timeout: 30_000 });
  assert.equal(stdout, "200\nunreachable\n");
});

test("push promises and other answers do no harm", async (context) => {
  const { origin } = await start(context, (stream) => {
    stream.additionalHeaders({ ":status": 103 });
    answer(stream, USER, { "content-type": "text/html", "set-cookie": ["a=b", "c=d"] });
  });
  await assert.rejects(relayAt(context, origin).user("ada"), OddAnswer);
});

test("origins and certificates are checked at once", () => {
  const { at, issue } = authority;
  const make = (origin, more = {}) => new Relay(origin, {
    ca: at("ca.pem"), certificate: at("shop.pem"), key: at("shop.key"), store: new MemoryStore(),
    ...more,
  });
  for (const origin of [
    "http://localhost", "https://localhost/", "https://a@localhost", "localhost", "https://", "",
    "https://localhost?x", "https://local host", undefined, "https://localhost#shop",
  ]) {
    assert.throws(() => make(origin), TypeError, origin);
  }
  issue("two", "URI:twoefay:website:shop,URI:twoefay:website:bank");
  issue("device", "URI:twoefay:device:shop");
  for (const name of ["two", "device", "localhost"]) {
    assert.throws(() => make("https://localhost", { certificate: at(`${name}.pem`) }), TypeError);
  }
  issue("bank", "URI:twoefay:website:bank");
  assert.throws(() => make("https://localhost", { key: at("bank.key") }), TypeError);
  for (const more of [{ alowUnpinned: true }, { store: undefined }, { ca: undefined }]) {
    assert.throws(() => make("https://localhost", more), TypeError);
  }
  make("https://[::1]:8080").close();
});
