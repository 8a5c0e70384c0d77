/**
 * A store in a directory, for a website on one machine that has no database.
 *
 * Every row is a file, and every promise of the store is one call of the file system that succeeds
 * for a single caller, so that several processes may use the directory at once:
 *
 * - `spend` deletes the file of the request.
 * - `pin` moves all `k`s of the user away at once. Of two calls, one finds nothing to move. Then it
 *   links the file of the key to its name, which fails if there is one.
 * - `unpin` moves them away, too, and then marks the phone. So a `pin` that runs at the same time
 *   finds no `k`, or pins a phone that is marked, and does not count.
 *
 * If two calls meet, the loser may use up codes, and the user needs another one; two phones are
 * never pinned by them. Names are digests. The file system must be a local one with hard links.
 */

import { mkdirSync } from "node:fs";
import { access, link, mkdir, open, readdir, readFile, rename, rm, unlink } from "node:fs/promises";
import { randomUUID } from "node:crypto";
import { isAbsolute, join } from "node:path";
import { fileURLToPath } from "node:url";
import { decode, encode } from "../jws.js";
import { digest, EVENT_LIFE, keyOf, REQUEST_LIFE, SECRET_LIFE } from "./store.js";

const HOUR = 3_600;
const DAY = 86_400;
const REVOKED = ".revoked";

export class FileStore {
  #root;

  /**
   * `directory` is made if it is not there. Nobody but the website may read it.
   *
   * It is absolute, or a URL: started elsewhere, a website would find a new, empty store at a
   * relative path, and take nobody for enrolled.
   */
  constructor(directory) {
    this.#root = directory instanceof URL ? fileURLToPath(directory) : directory;
    if (!isAbsolute(this.#root)) {
      throw new TypeError('the directory must be absolute: new URL("…", import.meta.url)');
    }
    for (const name of ["users", "tokens", "requests", "events", "moved"]) {
      mkdirSync(join(this.#root, name), { recursive: true, mode: 0o700 });
    }
  }

  async addUser(username, token) {
    const user = await this.#makeUser(username);
    const former = await this.token(username);
    await this.#write(join(this.#root, "tokens", digest(token)), keyOf(username));
    await this.#write(join(user, "token"), token);
    if (former !== null && former !== token) {
      await rm(join(this.#root, "tokens", digest(former)), { force: true });
    }
  }

  async token(username) {
    return readText(join(this.#user(username), "token"));
  }

  async addSecret(username, k, now) {
    const user = await this.#makeUser(username);
    const secrets = join(user, "secrets");
    for (const { name, at } of await this.#secrets(username)) {
      if (at <= now - SECRET_LIFE) await rm(join(secrets, name), { force: true });
    }
    const row = JSON.stringify({ k: encode(k), at: now });
    const write = async () => {
      await mkdir(secrets, { recursive: true, mode: 0o700 });
      await this.#write(join(secrets, digest(k)), row);
    };
    // A `pin` may have moved the directory away between the two steps.
    if (!await isDone(write(), "ENOENT")) await write();
  }

  async secrets(username, now) {
    const rows = await this.#secrets(username);
    return rows.filter(({ at }) => at > now - SECRET_LIFE).map(({ k }) => decode(k));
  }

  async #secrets(username) {
    const secrets = join(this.#user(username), "secrets");
    const rows = [];
    for (const name of await list(secrets)) {
      const row = await readText(join(secrets, name));
      if (row !== null) rows.push({ name, ...JSON.parse(row) });
    }
    return rows;
  }

  async pin(username, device, jwk, k) {
    const user = this.#user(username);
    const secrets = join(user, "secrets");
    const phone = join(user, "phones", digest(device));
    if (await exists(phone) || await exists(phone + REVOKED)) return false;
    if (!await exists(join(secrets, digest(k)))) return false;
    const moved = join(this.#root, "moved", randomUUID());
    if (!await isDone(rename(secrets, moved), "ENOENT")) return false;
    try {
      // Not there if another call has pinned a phone, and a new `k` was added since.
      if (!await exists(join(moved, digest(k)))) return false;
      const row = JSON.stringify({ device, jwk });
      return await isDone(this.#create(phone, row), "EEXIST", "ENOENT");
    } finally {
      await rm(moved, { recursive: true, force: true });
    }
  }

  async pins(username) {
    const phones = join(this.#user(username), "phones");
    const names = await list(phones);
    const pins = new Map();
    for (const name of names) {
      if (name.endsWith(REVOKED) || names.includes(name + REVOKED)) continue;
      const row = await readText(join(phones, name));
      if (row === null) continue;
      const { device, jwk } = JSON.parse(row);
      pins.set(device, jwk);
    }
    return pins;
  }

  async wasPinned(username) {
    const names = await list(join(this.#user(username), "phones"));
    return names.some((name) => !name.endsWith(REVOKED));
  }

  async unpin(username, device) {
    await this.#revoke(keyOf(username), device);
  }

  async unpinByToken(token, device) {
    const key = await readText(join(this.#root, "tokens", digest(token)));
    if (key === null) return;
    if (await readText(join(this.#root, "users", key, "token")) !== token) return;
    await this.#revoke(key, device);
  }

  async #revoke(key, device) {
    const user = join(this.#root, "users", key);
    const mark = join(user, "phones", digest(device)) + REVOKED;
    if (!await exists(user) || await exists(mark)) return;
    const moved = join(this.#root, "moved", randomUUID());
    await isDone(rename(join(user, "secrets"), moved), "ENOENT");
    await rm(moved, { recursive: true, force: true });
    await isDone(this.#write(mark, ""), "ENOENT"); // the user was forgotten meanwhile
  }

  async forget(username) {
    const token = await this.token(username);
    const moved = join(this.#root, "moved", randomUUID());
    if (await isDone(rename(this.#user(username), moved), "ENOENT")) {
      await sync(join(this.#root, "users"));
    }
    await rm(moved, { recursive: true, force: true });
    if (token !== null) await rm(join(this.#root, "tokens", digest(token)), { force: true });
  }

  async open(request, now) {
    await this.#note("requests", request, now, HOUR, REQUEST_LIFE);
  }

  async spend(request) {
    const requests = join(this.#root, "requests");
    for (const period of await list(requests)) {
      if (await isDone(unlink(join(requests, period, digest(request))), "ENOENT")) {
        await sync(join(requests, period));
        return true;
      }
    }
    return false;
  }

  async hasSeen(event) {
    const events = join(this.#root, "events");
    for (const period of await list(events)) {
      if (await exists(join(events, period, digest(event)))) return true;
    }
    return false;
  }

  async see(event, now) {
    await this.#note("events", event, now, DAY, EVENT_LIFE);
  }

  /** Notes an id in the directory of its hour or day, so that old ones are deleted as a whole. */
  async #note(table, id, now, length, life) {
    const at = join(this.#root, table);
    const period = join(at, String(Math.floor(now / length)));
    if (await mkdir(period, { recursive: true, mode: 0o700 }) !== undefined) {
      const isOld = (name) => (Number(name) + 1) * length <= now - life;
      for (const name of (await list(at)).filter(isOld)) {
        await rm(join(at, name), { recursive: true, force: true });
      }
    }
    await this.#write(join(period, digest(id)), "");
  }

  #user(username) {
    return join(this.#root, "users", keyOf(username));
  }

  /** Makes the directories of a user. `pin` must not: it may run after the user was forgotten. */
  async #makeUser(username) {
    const user = this.#user(username);
    await mkdir(join(user, "phones"), { recursive: true, mode: 0o700 });
    return user;
  }

  /** Writes a whole file, or nothing; a former one is replaced. */
  async #write(path, text) {
    await this.#place(path, text, rename);
  }

  /** The same, but fails with EEXIST if the file is there. */
  async #create(path, text) {
    await this.#place(path, text, link);
  }

  async #place(path, text, move) {
    const made = join(this.#root, "moved", randomUUID());
    const file = await open(made, "wx", 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    try {
      await move(made, path);
      await sync(join(path, ".."));
    } finally {
      await rm(made, { force: true });
    }
  }
}

/** Whether an action was done; false if it failed with one of these codes. */
async function isDone(action, ...codes) {
  try {
    await action;
    return true;
  } catch (error) {
    if (codes.includes(error.code)) return false;
    throw error;
  }
}

function exists(path) {
  return isDone(access(path), "ENOENT");
}

async function list(directory) {
  try {
    return await readdir(directory);
  } catch (error) {
    if (error.code === "ENOENT") return [];
    throw error;
  }
}

async function readText(path) {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (error.code === "ENOENT") return null;
    throw error;
  }
}

/** Stores the names of a directory durably: a failure of power must not bring a file back. */
async function sync(directory) {
  const handle = await open(directory, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
