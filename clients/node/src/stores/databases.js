/**
 * Stores in databases, over the driver that the website has already: `pg`, `mysql2/promise`,
 * `better-sqlite3` or `node:sqlite`. The tables are those of the Python client.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { decode, encode } from "../jws.js";
import { EVENT_LIFE, keyOf, REQUEST_LIFE, SECRET_LIFE } from "./store.js";

// VARCHAR rather than TEXT: MySQL has no key over a TEXT. All rows are written by a key: MySQL
// locks all rows that a statement looks at, also those of other users, which ends in deadlocks.
const TABLES = [
  "twoefay_user (name VARCHAR(64) PRIMARY KEY, token VARCHAR(255) NOT NULL)",
  "twoefay_secret (name VARCHAR(64) NOT NULL, k VARCHAR(64) NOT NULL, at BIGINT NOT NULL,"
    + " PRIMARY KEY (name, k))",
  "twoefay_phone (name VARCHAR(64) NOT NULL, device VARCHAR(255) NOT NULL,"
    + " jwk VARCHAR(1000) NOT NULL, revoked SMALLINT DEFAULT 0 NOT NULL,"
    + " PRIMARY KEY (name, device))",
  "twoefay_request (request VARCHAR(64) PRIMARY KEY, at BIGINT NOT NULL)",
  "twoefay_event (event VARCHAR(255) PRIMARY KEY, at BIGINT NOT NULL)",
];
const ATTEMPTS = 5;
/** So many old rows are deleted by one call: a login does not wait for all. */
const MOST_OLD_ROWS = 100;

/** Ends a transaction without an effect. */
class Undo extends Error {}

/**
 * What the stores share. A subclass has `lock`, which ends a SELECT whose rows are locked, and:
 *
 * - `transaction(work)` runs `work(run)` in a transaction, and undoes it if that throws.
 *   `run(statement, ...values)` returns `rows` and `count`, the number of changed rows.
 * - `insert(run, statement, ...values)` returns false if the row is there already.
 * - `isCollision(error)` is true if the database gave up one of two transactions for the other.
 */
class DatabaseStore {
  #tables = null;

  async addUser(username, token) {
    const name = keyOf(username);
    const insert = "INSERT INTO twoefay_user (name, token) VALUES (?, ?)";
    // Two transactions: MySQL keeps a lock on the row that it found, and two would then wait for
    // each other.
    if (await this.#run((run) => this.insert(run, insert, name, token))) return;
    const update = "UPDATE twoefay_user SET token = ? WHERE name = ?";
    await this.#run((run) => run(update, token, name));
  }

  async token(username) {
    const rows = await this.#rows("SELECT token FROM twoefay_user WHERE name = ?", keyOf(username));
    return rows.length > 0 ? rows[0].token : null;
  }

  async addSecret(username, k, now) {
    await this.#deleteOld("twoefay_secret", now - SECRET_LIFE, "name", "k");
    const insert = "INSERT INTO twoefay_secret (name, k, at) VALUES (?, ?, ?)";
    await this.#run((run) => run(insert, keyOf(username), encode(k), now));
  }

  async secrets(username, now) {
    const select = "SELECT k FROM twoefay_secret WHERE name = ? AND at > ?";
    return (await this.#rows(select, keyOf(username), now - SECRET_LIFE)).map(({ k }) => decode(k));
  }

  async pin(username, device, jwk, k) {
    const name = keyOf(username);
    try {
      await this.#run(async (run) => {
        const rows = await this.#lockSecrets(run, name);
        if (!rows.some((row) => row.k === encode(k))) throw new Undo();
        await run("DELETE FROM twoefay_secret WHERE name = ?", name);
        const insert = "INSERT INTO twoefay_phone (name, device, jwk) VALUES (?, ?, ?)";
        if (!await this.insert(run, insert, name, device, JSON.stringify(jwk))) throw new Undo();
      });
    } catch (error) {
      if (error instanceof Undo) return false;
      throw error;
    }
    return true;
  }

  /**
   * Of two that run at once, the second waits here, and then finds no row. All rows of the user are
   * locked in one order, so that none waits for the other.
   */
  async #lockSecrets(run, name) {
    const select = `SELECT k FROM twoefay_secret WHERE name = ? ORDER BY k${this.lock}`;
    return (await run(select, name)).rows;
  }

  async pins(username) {
    const select = "SELECT device, jwk FROM twoefay_phone WHERE name = ? AND revoked = 0";
    const rows = await this.#rows(select, keyOf(username));
    return new Map(rows.map(({ device, jwk }) => [device, JSON.parse(jwk)]));
  }

  async wasPinned(username) {
    const select = "SELECT device FROM twoefay_phone WHERE name = ?";
    return (await this.#rows(select, keyOf(username))).length > 0;
  }

  async unpin(username, device) {
    await this.#revoke(keyOf(username), device);
  }

  async unpinByToken(token, device) {
    const rows = await this.#rows("SELECT name FROM twoefay_user WHERE token = ?", token);
    for (const { name } of rows) await this.#revoke(name, device);
  }

  async #revoke(name, device) {
    const select = "SELECT revoked FROM twoefay_phone WHERE name = ? AND device = ?";
    await this.#run(async (run) => {
      // First: if the phone is pinned at this moment, this waits here, and then finds its row.
      await this.#lockSecrets(run, name);
      const { rows } = await run(select, name, device);
      if (rows.some(({ revoked }) => Number(revoked) === 1)) return;
      await run("DELETE FROM twoefay_secret WHERE name = ?", name);
      const revoke = "UPDATE twoefay_phone SET revoked = 1 WHERE name = ? AND device = ?";
      await run(revoke, name, device);
    });
  }

  async forget(username) {
    await this.#run(async (run) => {
      for (const table of ["user", "secret", "phone"]) {
        await run(`DELETE FROM twoefay_${table} WHERE name = ?`, keyOf(username));
      }
    });
  }

  async open(request, now) {
    await this.#deleteOld("twoefay_request", now - REQUEST_LIFE, "request");
    const insert = "INSERT INTO twoefay_request (request, at) VALUES (?, ?)";
    await this.#run((run) => run(insert, request, now));
  }

  async spend(request) {
    const remove = "DELETE FROM twoefay_request WHERE request = ?";
    return (await this.#run((run) => run(remove, request))).count === 1;
  }

  async hasSeen(event) {
    const select = "SELECT event FROM twoefay_event WHERE event = ?";
    return (await this.#rows(select, event)).length > 0;
  }

  async see(event, now) {
    await this.#deleteOld("twoefay_event", now - EVENT_LIFE, "event");
    const insert = "INSERT INTO twoefay_event (event, at) VALUES (?, ?)";
    await this.#run((run) => this.insert(run, insert, event, now));
  }

  /** Deletes old rows by their keys: a search by time would lock the others (see above). */
  async #deleteOld(table, before, ...key) {
    const select = `SELECT ${key.join(", ")} FROM ${table} WHERE at < ? LIMIT ${MOST_OLD_ROWS}`;
    // Again with the time: the row may be another one meanwhile.
    const where = [...key.map((column) => `${column} = ?`), "at < ?"].join(" AND ");
    for (const row of await this.#rows(select, before)) {
      const values = key.map((column) => row[column]);
      await this.#run((run) => run(`DELETE FROM ${table} WHERE ${where}`, ...values, before));
    }
  }

  async #rows(statement, ...values) {
    return (await this.#run((run) => run(statement, ...values))).rows;
  }

  /** Runs a transaction, and again if it collided with another one: nothing of it was done then. */
  async #run(work) {
    this.#tables ??= this.#create().catch((error) => {
      this.#tables = null;
      throw error;
    });
    await this.#tables;
    return this.#attempt(work);
  }

  async #create() {
    for (const table of TABLES) {
      const [name] = table.split(" ");
      // PostgreSQL refuses even IF NOT EXISTS to an account that may not create tables.
      const found = this.#attempt((run) => run(`SELECT 1 FROM ${name} LIMIT 0`));
      const isThere = await found.then(() => true, () => false);
      if (!isThere) await this.#attempt((run) => run(`CREATE TABLE IF NOT EXISTS ${table}`));
    }
  }

  async #attempt(work) {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.transaction(work);
      } catch (error) {
        if (!this.isCollision(error) || attempt === ATTEMPTS) throw error;
        await sleep(Math.random() * 10 * 2 ** attempt); // or the same two would meet again
      }
    }
  }
}

/** A store in PostgreSQL. `pool` is a `Pool` of the package `pg`. */
export class PostgreSQLStore extends DatabaseStore {
  lock = " FOR UPDATE";
  #pool;

  constructor(pool) {
    super();
    this.#pool = pool;
  }

  async transaction(work) {
    const client = await this.#pool.connect();
    let fault;
    // The pool listens to idle connections alone. If this one is lost, its query fails, and nobody
    // else has to know; without a listener, the event would end the process.
    const ignore = () => {};
    client.on("error", ignore);
    try {
      await client.query("BEGIN");
      const result = await work(async (statement, ...values) => {
        let number = 0;
        const { rows, rowCount } = await client.query(
          statement.replace(/\?/g, () => `$${++number}`), values);
        return { rows, count: rowCount };
      });
      await client.query("COMMIT");
      return result;
    } catch (error) {
      // A connection that cannot even undo is not given back to the pool.
      await client.query("ROLLBACK").catch((broken) => (fault = broken));
      throw error;
    } finally {
      client.off("error", ignore);
      client.release(fault);
    }
  }

  async insert(run, statement, ...values) {
    return (await run(`${statement} ON CONFLICT DO NOTHING`, ...values)).count === 1;
  }

  isCollision({ code }) {
    // A row twice is one, too: two processes that create a table at once meet in the catalogue.
    return ["40001", "40P01", "23505"].includes(code);
  }
}

/** A store in MySQL or MariaDB. `pool` is a pool of `mysql2/promise`. */
export class MySQLStore extends DatabaseStore {
  lock = " FOR UPDATE";
  #pool;

  constructor(pool) {
    super();
    this.#pool = pool;
  }

  async transaction(work) {
    const connection = await this.#pool.getConnection();
    let isBroken = false;
    try {
      await connection.beginTransaction();
      const result = await work(async (statement, ...values) => {
        const [rows] = await connection.execute(statement, values);
        return { rows, count: rows.affectedRows };
      });
      await connection.commit();
      return result;
    } catch (error) {
      await connection.rollback().catch(() => (isBroken = true));
      throw error;
    } finally {
      if (isBroken) connection.destroy();
      else connection.release();
    }
  }

  async insert(run, statement, ...values) {
    try {
      await run(statement, ...values);
      return true;
    } catch (error) {
      // `INSERT IGNORE` would hide other faults, too: it clips texts that are too long.
      if (error.code === "ER_DUP_ENTRY") return false;
      throw error;
    }
  }

  isCollision({ code }) {
    return code === "ER_LOCK_DEADLOCK";
  }
}

/**
 * A store in a file of SQLite, for a website on one machine. `database` is a `Database` of
 * better-sqlite3 or a `DatabaseSync` of node:sqlite, which nothing else uses.
 */
export class SQLiteStore extends DatabaseStore {
  lock = ""; // a transaction has the whole file
  #database;
  #last = Promise.resolve();

  constructor(database) {
    super();
    this.#database = database;
    database.exec("PRAGMA busy_timeout = 10000"); // another process may write
  }

  /** One after the other: all share the connection. */
  transaction(work) {
    const next = this.#last.then(() => this.#transaction(work));
    this.#last = next.catch(() => {});
    return next;
  }

  async #transaction(work) {
    const database = this.#database;
    database.exec("BEGIN IMMEDIATE");
    try {
      const result = await work(async (statement, ...values) => {
        const prepared = database.prepare(statement);
        if (statement.startsWith("SELECT")) return { rows: prepared.all(...values), count: 0 };
        return { rows: [], count: Number(prepared.run(...values).changes) };
      });
      database.exec("COMMIT");
      return result;
    } catch (error) {
      database.exec("ROLLBACK");
      throw error;
    }
  }

  async insert(run, statement, ...values) {
    return (await run(`${statement} ON CONFLICT DO NOTHING`, ...values)).count === 1;
  }

  isCollision() {
    return false;
  }
}
