/** The code of README.md, as a newcomer copies it. */

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { lacksPrograms, RealRelay } from "./real.js";

const README = readFileSync(new URL("../README.md", import.meta.url), "utf8");

describe("the fifteen lines of README.md", { skip: lacksPrograms }, () => {
  let real, shop;
  const former = process.cwd();

  before(async () => (real = await RealRelay.start()));
  after(async () => {
    process.chdir(former);
    shop?.relay.close();
    await real.end();
  });

  test("let a user in by a phone", async (context) => {
    const [, code] = /```js shop\.mjs\n(.*?)```/s.exec(README);
    assert(code.split("\n").filter((line) => line.trim()).length <= 15);
    const packages = join(real.directory, "node_modules");
    mkdirSync(packages);
    symlinkSync(new URL("..", import.meta.url).pathname, join(packages, "twoefay"));
    const file = join(real.directory, "shop.mjs");
    writeFileSync(file, code.replace("https://localhost:8080", real.origin));
    process.chdir(real.directory);
    shop = await import(pathToFileURL(file));

    const shown = [];
    context.mock.method(console, "log", (...values) => shown.push(values.join(" ")));
    const ask = shop.relay.ask;
    const asked = new Promise((go) => {
      shop.relay.ask = async (...values) => {
        const login = await ask.apply(shop.relay, values);
        go(login);
        return login;
      };
    });
    await real.enrol((await shop.relay.register("newcomer")).uri, "newcomer");
    const waiting = shop.logIn("newcomer", "192.0.2.7", "Firefox");
    const { challenge, number } = await asked;
    assert.equal(await real.answer("approve", challenge, number, "newcomer"), 0);
    assert.equal(await waiting, true);
    assert.deepEqual(shown, [`Enter this number on your phone: ${number}`]);
    assert((await shop.enrol("another-newcomer")).startsWith("<svg"));
  });
});
