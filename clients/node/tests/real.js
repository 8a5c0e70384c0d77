/** A real relay and a real phone: the programs twoefayd and twoefay, over loopback. */

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

const DEFAULT = new URL("../../../.build/debug", import.meta.url).pathname;
const PROGRAMS = resolve(process.env.TWOEFAY_PROGRAMS ?? DEFAULT);
const areThere = ["twoefayd", "twoefay"].every((name) => existsSync(join(PROGRAMS, name)));
const run = promisify(execFile);

/** For `skip` of a test: false, or what is missing. */
export const lacksPrograms = areThere
  ? false : `no twoefay and twoefayd in ${PROGRAMS} (TWOEFAY_PROGRAMS)`;

/** A relay with the website `shop`, in a directory of its own. */
export class RealRelay {
  #daemon = null;

  static async start() {
    const relay = new RealRelay();
    relay.directory = mkdtempSync(join(tmpdir(), "twoefay-real-"));
    relay.port = await freePort(); // twoefayd has no port 0: its origin must be known before
    relay.origin = `https://localhost:${relay.port}`;
    await relay.run("init", "relay", "--listen", `127.0.0.1:${relay.port}`);
    const settings = join(relay.directory, "relay", "twoefay.yaml");
    const text = readFileSync(settings, "utf8");
    const allowed = '\nwebhooks:\n  allow: "127.0.0.0/8, ::1"\n';
    writeFileSync(settings, text.replace("\nwebhooks:\n", allowed));
    await relay.operate("website", "add", "shop");
    await relay.start();
    return relay;
  }

  async run(...words) {
    const options = { cwd: this.directory, encoding: "utf8" };
    return (await run(join(PROGRAMS, "twoefay"), words, options)).stdout;
  }

  operate(...words) {
    return this.run("--config", "relay/twoefay.yaml", ...words);
  }

  /** Returns when the relay says in its log that it listens. */
  async start() {
    const words = ["--config", "relay/twoefay.yaml"];
    const options = { cwd: this.directory, stdio: ["ignore", "ignore", "pipe"] };
    this.#daemon = spawn(join(PROGRAMS, "twoefayd"), words, options);
    const log = join(this.directory, "relay.log");
    const lines = createInterface({ input: this.#daemon.stderr });
    await new Promise((go, fail) => {
      lines.on("line", (line) => {
        appendFileSync(log, `${line}\n`);
        if (line.includes("event=daemon.started")) go();
      });
      lines.on("close", () => fail(new Error(readFileSync(log, "utf8"))));
    });
  }

  async stop() {
    if (this.#daemon === null) return;
    const ended = once(this.#daemon, "exit");
    this.#daemon.kill();
    await ended;
    this.#daemon = null;
  }

  async end() {
    await this.stop();
    rmSync(this.directory, { recursive: true });
  }

  /** The options of a client. */
  options(store, website = "shop") {
    const at = (...names) => join(this.directory, ...names);
    const [certificate, key] = [at(`${website}.pem`), at(`${website}.key`)];
    return { ca: at("relay", "ca.pem"), certificate, key, store };
  }

  // The phone

  enrol(uri, phone) {
    return this.run("phone", "enrol", uri, "--keys", phone, "--json");
  }

  /** `approve`, `deny` or `fraud`. Returns the exit status of the phone. */
  async answer(what, challenge, number, phone) {
    const words = ["phone", what, "--keys", phone, "--challenge", challenge];
    if (number !== null && what === "approve") words.push("--number", number);
    try {
      await this.run(...words);
      return 0;
    } catch (error) {
      if (typeof error.code === "number") return error.code;
      throw error;
    }
  }
}

async function freePort() {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address();
  probe.close();
  await once(probe, "close");
  return port;
}
