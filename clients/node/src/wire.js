/**
 * HTTP/2 to the relay: one request with its answer, over connections that are kept and replaced.
 *
 * An idle connection neither keeps the process alive nor lives for long. A connection that the
 * relay closes, or on which an answer is overdue, takes no further requests.
 */

import { connect, constants } from "node:http2";
import { Unreachable } from "./errors.js";

const MOST_BYTES = 1 << 20;
/** Requests at once on a connection, until the relay has named its limit. */
const MOST_STREAMS = 100;
/** Seconds: for an answer, beyond those for which the relay may hold the request. */
const TIMES = { answer: 15, connect: 5, idle: 30 };

export class Wire {
  #connections = new Set();
  #mostStreams = MOST_STREAMS;

  /** `tls` has `ca`, `cert` and `key`. The authority of the relay is trusted, and no other. */
  constructor(origin, tls, times = TIMES) {
    this.origin = origin;
    this.times = times;
    // Said explicitly: an environment variable could switch verification off.
    this.options = { ...tls, rejectUnauthorized: true, settings: { enablePush: false } };
  }

  /** Sends a request. Throws Unreachable if no whole answer comes. */
  exchange = async (call) => {
    let connection;
    try {
      connection = this.#connection();
      return await connection.exchange(call);
    } catch (error) {
      if (error instanceof Unreachable) throw error;
      const { code, message } = error.cause ?? error; // of the connection, or of the request
      throw new Unreachable(`the relay gave no answer: ${code ?? message}`, { cause: error });
    }
  };

  /** Lets the running requests end, and opens no connection that lasts. */
  close() {
    for (const connection of this.#connections) connection.retire();
  }

  #connection() {
    for (const connection of this.#connections) {
      if (connection.hasRoom(this.#mostStreams)) return connection;
    }
    const made = new Connection(this.origin, this.options, this.times, {
      onLimit: (most) => (this.#mostStreams = Math.min(most, MOST_STREAMS)),
      onEnd: () => this.#connections.delete(made),
    });
    this.#connections.add(made);
    return made;
  }
}

class Connection {
  #session;
  #isRetired = false;
  #running = 0;
  #idle;
  #onEnd;
  #times;

  constructor(origin, options, times, { onLimit, onEnd }) {
    this.#times = times;
    this.#onEnd = onEnd;
    this.#session = connect(origin, options);
    this.#session.on("remoteSettings", (settings) => onLimit(settings.maxConcurrentStreams));
    const late = setTimeout(() => this.#session.destroy(new Error("no connection in time")),
      times.connect * 1000);
    this.#session.once("connect", () => clearTimeout(late));
    this.#session.once("close", () => {
      clearTimeout(late);
      this.retire();
    });
    this.#session.once("goaway", () => this.retire());
    this.#session.on("error", () => {}); // each request has its own
  }

  hasRoom(mostStreams) {
    const { closed, destroyed } = this.#session;
    return !this.#isRetired && !closed && !destroyed && this.#running < mostStreams;
  }

  /** Takes no further requests, and closes the connection when the running ones have ended. */
  retire() {
    if (this.#isRetired) return;
    this.#isRetired = true;
    clearTimeout(this.#idle);
    this.#onEnd();
    this.#session.close();
  }

  async exchange(call) {
    this.#begin();
    try {
      return await this.#request(call);
    } finally {
      this.#end();
    }
  }

  #begin() {
    clearTimeout(this.#idle);
    if (this.#running++ === 0) this.#session.ref();
  }

  #end() {
    if (--this.#running > 0) return;
    this.#session.unref(); // also if it is closing: a dead host never answers that
    if (this.#isRetired) return;
    this.#idle = setTimeout(() => this.retire(), this.#times.idle * 1000).unref();
  }

  #request({ method, path, body, headers, hold = 0 }) {
    const content = JSON.stringify(body); // before the stream: a wrong argument opens none
    return new Promise((resolve, reject) => {
      const stream = this.#session.request({
        ":method": method,
        ":path": path,
        // An answer is at most some kilobytes: without compression, a small one cannot grow.
        "accept-encoding": "identity",
        "user-agent": "twoefay-node",
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      }, { endStream: body === undefined });
      const overdue = setTimeout(() => {
        this.retire(); // it may be dead, and nothing but silence would tell
        reject(new Unreachable("the relay gave no answer in time"));
        stream.close(constants.NGHTTP2_CANCEL);
      }, (hold + this.#times.answer) * 1000);
      stream.once("close", () => clearTimeout(overdue));
      collect(stream, resolve, reject);
      if (body !== undefined) stream.end(content);
    });
  }
}

/** Collects an answer within a limit: a relay must not fill the memory of a website. */
function collect(stream, resolve, reject) {
  let head, isWhole = false, size = 0;
  const parts = [];
  stream.once("response", (fields) => (head = fields));
  stream.on("data", (part) => {
    parts.push(part);
    size += part.length;
    if (size <= MOST_BYTES) return;
    reject(new Unreachable("the answer is too long"));
    stream.close(constants.NGHTTP2_CANCEL);
  });
  stream.once("end", () => (isWhole = true));
  stream.on("error", reject);
  stream.once("close", () => {
    const announced = head?.["content-length"];
    const isCut = announced !== undefined && Number(announced) !== size;
    if (!head || !isWhole || isCut || stream.rstCode !== constants.NGHTTP2_NO_ERROR) {
      return reject(new Unreachable("the connection ended before the answer"));
    }
    resolve({ status: head[":status"], headers: head, body: Buffer.concat(parts) });
  });
}
