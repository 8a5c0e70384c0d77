import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { KnownBrowsers } from "../src/index.js";
import { address, browser } from "../src/texts.js";
import { NOW } from "./worlds.js";

const KEY = Buffer.from(Array.from({ length: 32 }, (_, index) => index));

test("the cookie is for one user and half a year", () => {
  const browsers = new KnownBrowsers(KEY);
  const value = browsers.value("ada", { now: NOW });
  const knows = (now, username = "ada", notBefore = 0) =>
    browsers.knows(value, username, { now, notBefore });
  assert(knows(NOW) && knows(NOW - 60) && knows(NOW + KnownBrowsers.LIFE - 1));
  assert(!knows(NOW + KnownBrowsers.LIFE) && !knows(NOW - 61) && !knows(NOW, "bob"));
  assert(!knows(NOW, "ada", NOW + 1));
  assert(!new KnownBrowsers(Buffer.alloc(32)).knows(value, "ada", { now: NOW }));
  assert(browsers.knows(browsers.value("ada"), "ada"));
});

test("other texts are no cookies", () => {
  for (const value of [undefined, null, "", "x", "é", "A".repeat(70), "=".repeat(70), ["x"], 7]) {
    assert.equal(new KnownBrowsers(KEY).knows(value, "ada", { now: NOW }), false);
  }
  assert.throws(() => new KnownBrowsers(KEY.subarray(1)), TypeError);
  assert.throws(() => new KnownBrowsers("x".repeat(32)), TypeError);
});

test("the form is that of the other clients", () => {
  const body = Buffer.alloc(20);
  body.writeBigUInt64BE(BigInt(NOW));
  const tag = createHmac("sha256", KEY).update("twoefay known browser\0").update(body);
  const value = Buffer.concat([body, tag.update("ada").digest()]).toString("base64url");
  assert(new KnownBrowsers(KEY).knows(value, "ada", { now: NOW }));
});

test("addresses are short, and texts are cleaned by characters", () => {
  for (const [given, sent] of [
    ["192.0.2.7", "192.0.2.7"], ["::ffff:192.0.2.7", "192.0.2.7"], ["::FFFF:C000:207", "192.0.2.7"],
    ["2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"], ["::", "::"], ["::1", "::1"],
    ["fe80::1%eth0", null], ["192.0.2.07", null], ["1.2.3", null], [undefined, null], [7, null],
    ["::192.0.2.7", "::c000:207"], ["[::1]", null], ["1.2.3.4/8", null],
  ]) {
    assert.equal(address(given), sent, String(given));
  }
  assert.equal(browser(`${"x".repeat(511)}😀😀`), `${"x".repeat(511)}😀`);
  assert.equal(browser("a\u00ad\u202e\u3164\ud800b "), "ab");
  assert.equal(browser(["x"]), null);
});
