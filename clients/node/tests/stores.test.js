/** All stores keep the same promises. */

import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, beforeEach, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { FileStore, PostgreSQLStore } from "../src/index.js";
import { keyOf } from "../src/stores/store.js";
import { closePools, KINDS } from "./databases.js";

const KEY = { kty: "EC", crv: "P-256", x: "x", y: "y" };
const OTHER = { ...KEY, x: "z" };
const LONG_KEY = { ...KEY, x: "x".repeat(43), y: "y".repeat(43) };
/** The record of a web phone, each text as long as it can be. */
const WEB = {
  ...LONG_KEY,
  app: `https://${"a".repeat(120)}`,
  webauthn: { rp: "a".repeat(120), id: "A".repeat(256), jwk: LONG_KEY },
};
const NOW = 1_795_334_400;
const DAY = 86_400;
const K = Buffer.alloc(32, "k");
const USERS = ["ada", "bob"];

const directories = [];
function temporary() {
  directories.push(mkdtempSync(join(tmpdir(), "twoefay-store-")));
  return directories.at(-1);
}
after(async () => {
  await closePools();
  for (const directory of directories) rmSync(directory, { recursive: true });
});

async function pin(store, username, device, jwk = KEY) {
  const k = randomBytes(32);
  await store.addSecret(username, k, NOW);
  return store.pin(username, device, jwk, k);
}

const pinsOf = async (store, username) => Object.fromEntries(await store.pins(username));
const texts = (secrets) => secrets.map((k) => Buffer.from(k).toString());

/** How often each value occurs. */
function counted(values) {
  const counts = {};
  for (const value of values) counts[value] = (counts[value] ?? 0) + 1;
  return counts;
}

for (const [kind, { lacks, make }] of Object.entries(KINDS)) {
  describe(kind, { skip: lacks }, () => promises(make));
}

function promises(make) {
  let store;
  beforeEach(async () => {
    store = make(temporary());
    for (const name of USERS) await store.forget(name);
  });

  test("a request is spent once", async () => {
    const request = randomBytes(16).toString("hex");
    await store.open(request, NOW);
    const spent = await Promise.all(Array.from({ length: 8 }, () => store.spend(request)));
    assert.deepEqual(counted(spent), { true: 1, false: 7 });
    assert(!await store.spend(request) && !await store.spend("never"));
  });

  test("many logins are opened at once", async () => {
    const requests = Array.from({ length: 20 }, () => randomBytes(16).toString("hex"));
    await Promise.all(requests.map((request) => store.open(request, NOW)));
    const spent = await Promise.all(requests.map((request) => store.spend(request)));
    assert.deepEqual(counted(spent), { true: 20 });
  });

  test("old requests are deleted", async () => {
    const [old, young] = [1, 2].map(() => randomBytes(16).toString("hex"));
    await store.open(old, NOW);
    await store.open(young, NOW + 2 * DAY);
    assert(!await store.spend(old) && await store.spend(young));
  });

  test("a pinned key is never replaced", async () => {
    assert(await pin(store, "ada", "d1") && !await pin(store, "ada", "d1", OTHER));
    assert.deepEqual(await pinsOf(store, "ada"), { d1: KEY });
    await store.unpin("ada", "d1");
    await store.unpin("ada", "d1");
    assert.deepEqual(await pinsOf(store, "ada"), {});
  });

  test("the record of a web phone is returned whole", async () => {
    assert(await pin(store, "ada", "d1", WEB) && !await pin(store, "ada", "d1"));
    assert.deepEqual(await pinsOf(store, "ada"), { d1: WEB });
  });

  test("a secret pins one phone", async () => {
    await store.addSecret("ada", K, NOW);
    const pinned = await Promise.all(
      Array.from({ length: 8 }, (_, index) => store.pin("ada", `d${index}`, KEY, K)));
    assert.deepEqual(counted(pinned), { true: 1, false: 7 });
    assert.equal((await store.pins("ada")).size, 1);
  });

  test("of several secrets that are used at once, one pins a phone", async () => {
    const secrets = Array.from({ length: 6 }, () => randomBytes(32));
    for (const k of secrets) await store.addSecret("ada", k, NOW);
    const pins = secrets.map((k, index) => store.pin("ada", `d${index}`, KEY, k));
    const pinned = await Promise.all(pins);
    assert.deepEqual(counted(pinned), { true: 1, false: 5 });
    assert.equal((await store.pins("ada")).size, 1);
  });

  test("a pin closes all open enrolments of the user", async () => {
    for (const name of USERS) {
      await store.addSecret(name, Buffer.from(`1 ${name}`), NOW);
      await store.addSecret(name, Buffer.from(`2 ${name}`), NOW);
    }
    assert(!await store.pin("ada", "d1", KEY, Buffer.from("1 bob")));
    assert(await store.pin("ada", "d1", KEY, Buffer.from("1 ada")));
    assert(!await store.pin("ada", "d2", KEY, Buffer.from("2 ada")));
    assert.equal((await store.secrets("ada", NOW)).length, 0);
    assert.equal((await store.secrets("bob", NOW)).length, 2);
    assert.deepEqual(await pinsOf(store, "ada"), { d1: KEY });
    // A key that is there already uses up no secret: the phone that has it is still to come.
    await store.addSecret("ada", Buffer.from("3 ada"), NOW);
    assert(!await store.pin("ada", "d1", OTHER, Buffer.from("3 ada")));
    assert.deepEqual(texts(await store.secrets("ada", NOW)), ["3 ada"]);
  });

  test("old secrets do not count", async () => {
    await store.addSecret("ada", K, NOW);
    assert.deepEqual((await store.secrets("ada", NOW + DAY - 1)).map(Buffer.from), [K]);
    assert.deepEqual(await store.secrets("ada", NOW + DAY), []);
  });

  test("an unpinned phone leaves a trace, and never comes back", async () => {
    assert.equal(await store.wasPinned("ada"), false);
    await pin(store, "ada", "d1");
    await store.unpin("ada", "d1");
    assert.equal((await store.pins("ada")).size, 0);
    assert.deepEqual([await store.wasPinned("ada"), await store.wasPinned("bob")], [true, false]);
    assert(!await pin(store, "ada", "d1", OTHER));
    assert.equal((await store.pins("ada")).size, 0);
    await pin(store, "ada", "d2");
    assert.deepEqual(await pinsOf(store, "ada"), { d2: KEY });
    await store.forget("ada");
    assert.equal(await store.wasPinned("ada"), false);
  });

  test("unpinning closes the user's open enrolments", async () => {
    const open = async () => (await store.secrets("ada", NOW)).length;
    await store.addUser("ada", "token of ada");
    await store.addSecret("bob", K, NOW);
    for (const unpin of [
      () => store.unpin("ada", "not pinned yet"),
      () => store.unpinByToken("token of ada", "nor this one"),
      () => store.unpin("ada", "d1"),
    ]) {
      await pin(store, "ada", "d1");
      const k = randomBytes(32);
      await store.addSecret("ada", k, NOW);
      await unpin();
      assert(!await store.pin("ada", "not pinned yet", KEY, k));
      assert.deepEqual([await open(), (await store.secrets("bob", NOW)).length], [0, 1]);
    }
    // Whoever reports an unbinding again and again must not end each new enrolment.
    await store.addSecret("ada", K, NOW);
    await store.unpin("ada", "d1");
    await store.unpinByToken("token of ada", "d1");
    assert.equal(await open(), 1);
  });

  test("a phone that is unpinned while it is pinned does not count", async () => {
    for (let round = 0; round < 10; round++) {
      const device = `d${round}`, k = randomBytes(32);
      await store.addSecret("ada", k, NOW);
      await Promise.all([store.pin("ada", device, KEY, k), store.unpin("ada", device)]);
      assert.deepEqual(await pinsOf(store, "ada"), {});
      assert.equal((await store.secrets("ada", NOW)).length, 0);
    }
  });

  test("an unpinned phone that was never there makes nobody enrolled", async () => {
    await store.addUser("ada", "token of ada");
    await store.unpin("ada", "d1");
    assert.equal(await store.wasPinned("ada"), false);
  });

  test("users at once do not wait for each other", async () => {
    const names = Array.from({ length: 12 }, (_, index) => `user ${index}`);
    await Promise.all(names.map(async (name) => {
      await store.forget(name);
      await store.addUser(name, `token of ${name}`);
      await store.addUser(name, `new token of ${name}`);
      const request = randomBytes(16).toString("hex");
      await store.open(request, NOW);
      assert(await pin(store, name, "d1"));
      assert(await store.spend(request));
      await store.unpinByToken(`new token of ${name}`, "d1");
      await store.see(`event of ${name}`, NOW);
    }));
    for (const name of names) assert.deepEqual(await pinsOf(store, name), {});
  });

  test("old rows do not hold up the new ones", async () => {
    const old = Array.from({ length: 30 }, () => randomBytes(16).toString("hex"));
    for (const request of old) await store.open(request, NOW - 2 * DAY);
    const requests = Array.from({ length: 30 }, () => randomBytes(16).toString("hex"));
    await Promise.all(requests.map(async (request) => {
      await store.open(request, NOW);
      assert(await store.spend(request));
    }));
  });

  test("only the user's own phone is unpinned", async () => {
    for (const name of USERS) {
      await store.addUser(name, `token of ${name}`);
      await pin(store, name, "d1");
    }
    await store.unpin("bob", "d1");
    await store.unpin("bob", "d2");
    await store.unpinByToken("token of nobody", "d1");
    assert.deepEqual([await pinsOf(store, "ada"), await pinsOf(store, "bob")], [{ d1: KEY }, {}]);
    await store.addUser("ada", "new token");
    await store.unpinByToken("token of ada", "d1");
    assert.deepEqual(await pinsOf(store, "ada"), { d1: KEY });
    await store.unpinByToken("new token", "d1");
    assert.deepEqual(await pinsOf(store, "ada"), {});
  });

  for (const other of ["Ada", "ada ", "áda", "ada\0", "a\u0308da", "../ada", "__proto__"]) {
    test(`"ada" is not ${JSON.stringify(other)}`, async () => {
      await store.addUser("ada", "t1");
      await pin(store, "ada", "d1");
      assert.deepEqual([(await store.pins(other)).size, await store.token(other)], [0, null]);
      await store.forget(other);
      assert.deepEqual(await pinsOf(store, "ada"), { d1: KEY });
      await store.addUser("ada", "t2");
      assert.equal(await store.token("ada"), "t2");
      await store.forget("ada");
      assert.deepEqual([(await store.pins("ada")).size, await store.token("ada")], [0, null]);
      assert.deepEqual(await store.secrets("ada", NOW), []);
    });
  }

  test("events are remembered for a month", async () => {
    const [old, young] = [1, 2].map(() => randomBytes(16).toString("hex"));
    assert.equal(await store.hasSeen(old), false);
    await store.see(old, NOW);
    await store.see(old, NOW);
    assert.equal(await store.hasSeen(old), true);
    await store.see(young, NOW + 32 * DAY);
    assert.deepEqual([await store.hasSeen(old), await store.hasSeen(young)], [false, true]);
  });
}

/** Lets four processes call a method of stores in one directory at once. */
async function processes(kind, directory, calls) {
  const program = new URL("store-process.js", import.meta.url);
  const children = Array.from({ length: 4 }, () => fork(program, [kind, directory]));
  const ends = children.map((child) => once(child, "exit"));
  await Promise.all(children.map((child) => once(child, "message")));
  const answers = children.map((child) => once(child, "message"));
  children.forEach((child, index) => child.send(calls[index]));
  const results = (await Promise.all(answers)).flatMap(([result]) => result);
  await Promise.all(ends);
  return results;
}

for (const kind of ["file", "sqlite"]) {
  describe(`${kind} for several processes`, { skip: KINDS[kind].lacks }, () => {
    test("each request is spent by one of them", async () => {
      const directory = temporary(), store = KINDS[kind].make(directory);
      const requests = Array.from({ length: 50 }, (_, index) => `r${index}`);
      for (const request of requests) await store.open(request, NOW);
      const calls = new Array(4).fill(requests.map((request) => ["spend", request]));
      assert.deepEqual(counted(await processes(kind, directory, calls)), { true: 50, false: 150 });
    });

    test("one of them pins a phone", async () => {
      const directory = temporary(), store = KINDS[kind].make(directory);
      const names = Array.from({ length: 20 }, (_, index) => `user ${index}`);
      const secretOf = (process) => Buffer.alloc(32, process % 2);
      for (const name of names) {
        for (const k of [secretOf(0), secretOf(1)]) {
          // Of other users it would be the same row in the table of secrets.
          await store.addSecret(name, Buffer.concat([k, Buffer.from(name)]), NOW);
        }
      }
      const calls = [0, 1, 2, 3].map((process) => names.map((name) => {
        const k = Buffer.concat([secretOf(process), Buffer.from(name)]).toString("base64url");
        return ["pin", name, `device ${process}`, KEY, k];
      }));
      const pinned = await processes(kind, directory, calls);
      assert.deepEqual(counted(pinned), { true: 20, false: 60 });
      for (const name of names) assert.equal((await store.pins(name)).size, 1);
    });
  });
}

test("nobody else may read the directory of a store", () => {
  const directory = join(temporary(), "store");
  new FileStore(directory);
  assert.equal(statSync(directory).mode & 0o077, 0);
});

test("the directory of a store does not depend on where the website starts", async () => {
  for (const path of ["store", "./store", ""]) assert.throws(() => new FileStore(path), TypeError);
  const directory = temporary();
  await new FileStore(pathToFileURL(join(directory, "store"))).addUser("ada", "t1");
  assert.equal(await new FileStore(join(directory, "store")).token("ada"), "t1");
});

// A transaction that locks rows of another one, by the website's own connection.
describe("a connection that is lost", { skip: KINDS.postgresql.lacks }, () => {
  test("fails its call, and not the process", async () => {
    const { pg, connectionString } = KINDS.postgresql;
    const store = KINDS.postgresql.make();
    await store.forget("ada");
    await store.addSecret("ada", K, NOW);
    const locks = new pg.Client({ connectionString });
    await locks.connect();
    try {
      await locks.query("BEGIN");
      await locks.query("SELECT * FROM twoefay_secret FOR UPDATE");
      const pinned = store.pin("ada", "d1", KEY, K).catch((error) => error);
      const end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        + " WHERE $1 = ANY (pg_blocking_pids(pid))";
      const own = (await locks.query("SELECT pg_backend_pid() AS pid")).rows[0].pid;
      let isEnded = false;
      while (!isEnded) isEnded = (await locks.query(end, [own])).rows.length > 0;
      assert.equal((await pinned).code, "57P01");
    } finally {
      await locks.end();
    }
    assert(await store.pin("ada", "d1", KEY, K));
  });
});

describe("an account that may not create tables", { skip: KINDS.postgresql.lacks }, () => {
  test("uses those that are there", async () => {
    const { pg, connectionString } = KINDS.postgresql;
    await KINDS.postgresql.make().token("ada");
    const owner = new pg.Client({ connectionString });
    await owner.connect();
    const pool = new pg.Pool({ connectionString });
    pool.on("connect", (client) => client.query("SET ROLE twoefay_shop"));
    try {
      await owner.query("DROP OWNED BY twoefay_shop; DROP ROLE twoefay_shop").catch(() => {});
      await owner.query("CREATE ROLE twoefay_shop; REVOKE CREATE ON SCHEMA public FROM PUBLIC");
      const rights = "SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public";
      await owner.query(`GRANT ${rights} TO twoefay_shop`);
      const denied = pool.query("CREATE TABLE IF NOT EXISTS twoefay_user (name INT)");
      await assert.rejects(denied, { code: "42501" });
      const store = new PostgreSQLStore(pool);
      await store.addUser("ada", "t1");
      assert.equal(await store.token("ada"), "t1");
      await store.forget("ada");
    } finally {
      await pool.end();
      await owner.end();
    }
  });
});

describe("the website's connection", { skip: KINDS.mysql.lacks }, () => {
  test("of MySQL may lock a user without holding up another one", async () => {
    const store = KINDS.mysql.make();
    for (const name of USERS) {
      await store.forget(name);
      await store.addUser(name, `token of ${name}`);
      await store.addSecret(name, Buffer.from(`k of ${name}`), NOW);
    }
    const request = randomBytes(16).toString("hex");
    await store.open(request, NOW);
    await KINDS.mysql.whileLocked([
      ["SELECT * FROM twoefay_user WHERE name = ? FOR UPDATE", keyOf("ada")],
      ["SELECT * FROM twoefay_secret WHERE name = ? FOR UPDATE", keyOf("ada")],
      ["SELECT * FROM twoefay_request WHERE request = ? FOR UPDATE", request],
    ], async () => {
      await store.open(randomBytes(16).toString("hex"), NOW);
      assert(await store.pin("bob", "d1", KEY, Buffer.from("k of bob")));
      await store.unpinByToken("token of bob", "d1");
    });
  });
});
