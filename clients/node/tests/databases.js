/** The stores that can be tested here, and what is missing for the others. */

import { createRequire } from "node:module";
import { join } from "node:path";
import { FileStore, MemoryStore, MySQLStore, PostgreSQLStore, SQLiteStore } from "../src/index.js";

const require = createRequire(import.meta.url);

/** A package of the website, or of NODE_PATH; null if it is not installed. */
export function installed(name) {
  try {
    return require(name);
  } catch (error) {
    if (error.code === "MODULE_NOT_FOUND") return null;
    throw error;
  }
}

const sqlite = await import("node:sqlite").catch(() => null);
const { TWOEFAY_TEST_POSTGRESQL, TWOEFAY_TEST_MYSQL } = process.env;
const pg = installed("pg"), mysql = installed("mysql2/promise") ?? installed("mysql");
const pools = [];

/** Each store: `lacks` is false or what is missing; `make(directory)` opens it. */
export const KINDS = {
  memory: { lacks: false, make: () => new MemoryStore() },
  file: { lacks: false, make: (directory) => new FileStore(join(directory, "store")) },
  sqlite: {
    lacks: sqlite ? false : "no node:sqlite in this version of Node",
    make: (directory) => new SQLiteStore(new sqlite.DatabaseSync(join(directory, "store.db"))),
  },
  postgresql: {
    lacks: TWOEFAY_TEST_POSTGRESQL ? (pg ? false : "no package pg") : "no PostgreSQL",
    pg,
    connectionString: TWOEFAY_TEST_POSTGRESQL,
    make: () => {
      const pool = new pg.Pool({ connectionString: TWOEFAY_TEST_POSTGRESQL });
      pool.on("error", () => {}); // an idle connection is lost: a website has this, too
      pools.push(pool);
      return new PostgreSQLStore(pool);
    },
  },
  mysql: {
    lacks: TWOEFAY_TEST_MYSQL ? (mysql ? false : "no package mysql2") : "no MariaDB",
    make: () => {
      const pool = mysql.createPool(JSON.parse(TWOEFAY_TEST_MYSQL));
      pools.push(pool);
      return new MySQLStore(typeof pool.execute === "function" ? pool : likeMySQL2(pool));
    },
    /** Runs `work` while another connection holds the locks of these statements. */
    whileLocked: async (statements, work) => {
      const pool = mysql.createPool(JSON.parse(TWOEFAY_TEST_MYSQL));
      pools.push(pool);
      const likely = typeof pool.execute === "function" ? pool : likeMySQL2(pool);
      const connection = await likely.getConnection();
      try {
        await connection.beginTransaction();
        for (const [statement, value] of statements) await connection.execute(statement, [value]);
        await work();
      } finally {
        await connection.rollback();
        connection.release();
      }
    },
  },
};

export async function closePools() {
  for (const pool of pools.splice(0)) await new Promise((go) => pool.end(go)?.then(go));
}

/** The older package `mysql`, which Debian has, in the form of `mysql2/promise`. */
function likeMySQL2(pool) {
  const promised = (target, method, ...values) => new Promise((go, fail) => {
    target[method](...values, (error, ...results) => (error ? fail(error) : go(results)));
  });
  return {
    async getConnection() {
      const [connection] = await promised(pool, "getConnection");
      return {
        beginTransaction: () => promised(connection, "beginTransaction"),
        commit: () => promised(connection, "commit"),
        rollback: () => promised(connection, "rollback"),
        execute: (statement, values) => promised(connection, "query", statement, values),
        release: () => connection.release(),
        destroy: () => connection.destroy(),
      };
    },
  };
}
