// What the app refuses to show, and what a website demands of the phone.
import { test } from "node:test";
import assert from "node:assert/strict";
import { asset } from "./assets.mjs";

const { Refused, readDemands, readQuestion, visible } = await import(asset("context.js"));

const good = {
  v: 1, website: "shop", display_name: "The Shop", username: "alice", number_digits: 2,
  created_at: "2026-11-21T10:04:30.120Z", expires_at: "2026-11-21T10:09:30.120Z",
};
const entry = (text, more = {}) => ({
  challenge: "c1", nonce: "n1", context: Buffer.from(text).toString("base64url"), expires_at: "2026-11-21T10:09:30.120Z", ...more,
});
const read = (text, more) => readQuestion(entry(text, more), "shop", Date.parse("2026-11-21T10:05:30.120Z"));
const changed = (change) => JSON.stringify({ ...good, ...change });
const without = (name) => JSON.stringify(Object.fromEntries(Object.entries(good).filter(([one]) => one !== name)));

test("a context is read with its unknown members ignored", () => {
  const { context, timeLeft } = read(changed({ later: true }));
  assert.deepEqual([context.displayName, context.numberDigits, timeLeft], ["The Shop", 2, 240_000]);
});

test("a context that cannot be shown whole is refused", () => {
  const refused = [
    "null", "[]", "{", `{"v":1,"v":1,${changed({}).slice(1)}`, changed({ v: 2 }), changed({ v: "1" }), changed({ website: "bank" }),
    changed({ number_digits: "2" }), changed({ number_digits: 10 }), changed({ details: {} }), changed({ details: [{ label: "a" }] }),
    changed({ created_at: "yesterday" }), changed({ created_at: "2026-02-30T10:00:00Z" }), changed({ place: 7 }),
    ...["website", "display_name", "username", "number_digits", "created_at", "expires_at"].map(without),
    `{"v": 1,${changed({}).slice(7)}`,
  ];
  for (const text of refused) assert.throws(() => read(text), Refused, text);
  for (const more of [{ challenge: "a b" }, { nonce: 1 }, { context: "=" }, { expires_at: "soon" }]) {
    assert.throws(() => read(changed({}), more), Refused, JSON.stringify(more));
  }
});

test("each hidden character is refused, in every text", () => {
  const ranges = [
    [0x00, 0x1f], [0x7f, 0x9f], [0xad], [0x34f], [0x61c], [0x115f, 0x1160], [0x17b4, 0x17b5], [0x180b, 0x180f], [0x200b, 0x200f],
    [0x2028, 0x202e], [0x2060, 0x206f], [0x3164], [0xfe00, 0xfe0f], [0xfeff], [0xffa0], [0xfff0, 0xfffb], [0x1bca0, 0x1bca3],
    [0x1d173, 0x1d17a], [0xe0000, 0xe0fff],
  ];
  for (const [first, last = first] of ranges) {
    for (const code of new Set([first, last])) {
      const text = `a${String.fromCodePoint(code)}b`;
      for (const change of [{ username: text }, { place: text }, { details: [{ label: text, value: "x" }] }, { details: [{ label: "x", value: text }] }]) {
        assert.throws(() => read(changed(change)), Refused, code.toString(16));
      }
    }
  }
  assert.equal(read(changed({ username: "Zoë 漢字 שלום" })).context.username, "Zoë 漢字 שלום");
});

test("hidden characters of other texts are shown by number", () => {
  assert.equal(visible("a\u202eb\u200b"), "a\\u{202e}b\\u{200b}");
});

test("the demands say what to do and what cannot be done", () => {
  assert.deepEqual(readDemands(undefined), { pin: null, needsOwner: false, missing: [], isStated: false });
  const all = {
    attestation: "required", assertion: true, os_version: "17.4", patch_level: 202607, verified_boot: true, screen_lock: true,
    max_uv_age: 300, pin: "sign", unmet: ["attestation"],
  };
  assert.deepEqual(readDemands(all), { pin: "sign", needsOwner: true, missing: ["attestation", "assertion"], isStated: true });
  assert.deepEqual(readDemands({ attestation: "recorded", pin: "later" }), { pin: null, needsOwner: false, missing: [], isStated: true });
});
