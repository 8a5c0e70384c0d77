// The links that the app follows, and those that it refuses, with the reason.
import { test } from "node:test";
import assert from "node:assert/strict";
import { asset } from "./assets.mjs";

const { LinkRefused, isLink, readActivation, takeLink } = await import(asset("activation.js"));

const pin = "Y8jqGfueMSwWvPxgmFM0uwl05lG6yTFSKTpJib3w0OI";
const k = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
const origin = "https://phone.example.com";
const relays = [origin, "https://phone.other.example"];
const query = (change = {}) => {
  const values = { relay: "https://login.example.net:8080", website: "shop", token: "ab12", code: "f91r8F9C", pin, at: origin, ...change };
  return Object.entries(values).filter(([, value]) => value !== null).map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
};
const take = (text, surroundings = {}) => takeLink(text, { origin, relays, ...surroundings });
const refusal = (reason) => (error) => error instanceof LinkRefused && error.reason === reason;

test("both forms of a link are followed", () => {
  for (const start of ["twoefay://enrol?", `${origin}/phone/#`]) {
    assert.ok(isLink(start + query()));
    const { relay, at, website, k: key } = take(start + query());
    assert.deepEqual([relay, at, website, key], ["https://login.example.net:8080", origin, "shop", null]);
  }
  assert.equal(take(`twoefay://enrol?${query({ at: null })}&more=1`).at, origin);
  assert.equal(take(`twoefay://enrol?${query({ at: relays[1], k })}`, { origin: "https://app.example.org" }).k.length, 32);
});

test("a link to a relay that the app may not call is refused with its name", () => {
  const found = (error) => refusal("linkOtherRelay")(error) && error.values.relay === "https://evil.example";
  assert.throws(() => take(`twoefay://enrol?${query({ at: "https://evil.example" })}`), found);
  assert.throws(() => take(`twoefay://enrol?${query({ at: null, relay: "https://evil.example" })}`, { relays: [] }), found);
  assert.throws(() => take(`twoefay://enrol?${query({ at: `${origin}:444` })}`), refusal("linkOtherRelay"));
});

test("the key of a website never enters an app that the relay serves", () => {
  const refused = (change, surroundings) =>
    assert.throws(() => take(`twoefay://enrol?${query({ k, ...change })}`, surroundings), refusal("linkKeyAtRelay"));
  refused({});
  refused({ relay: origin, at: relays[1] });
  // The same host at another port is the relay's, too.
  refused({ relay: `${origin}:8080`, at: relays[1] });
  refused({ at: relays[1] }, { origin: `${relays[1]}:8443` });
});

test("a link for native apps, or for another app, is refused", () => {
  assert.throws(() => take(`twoefay://enrol?${query({ phones: "native" })}`), refusal("linkNativeOnly"));
  assert.throws(() => take(`https://app.example.org/phone/#${query()}`), refusal("linkOtherApp"));
  // The reason is told before anything else that is wrong for this app.
  assert.throws(() => take(`${origin}/phone/#${query({ phones: "native", k, at: "https://evil.example" })}`), refusal("linkNativeOnly"));
  assert.equal(take(`twoefay://enrol?${query({ phones: "web" })}`).phones, "web");
  assert.equal(take(`twoefay://enrol?${query()}`).phones, null);
});

test("a damaged link is refused", () => {
  const names = ["relay", "website", "token", "code", "pin"];
  const faulty = [
    ...names.map((name) => query({ [name]: null })), ...names.map((name) => `${query()}&${name}=x`), `${query()}&%zz=1`, `${query()}&x`,
    query({ relay: "http://login.example.net" }), query({ relay: "https://login.example.net/" }), query({ relay: "https://a@b" }),
    query({ at: "https://phone.example.com/x" }), query({ at: "" }), query({ website: "Shop" }), query({ website: "-shop" }),
    query({ website: "a".repeat(65) }), query({ pin: `${pin}A` }), query({ k: "AAEC" }), query({ token: "" }),
    ...["", "any", "Native", "web,native"].map((phones) => query({ phones })), `${query({ phones: "web" })}&phones=web`,
  ];
  for (const text of faulty) {
    assert.throws(() => take(`twoefay://enrol?${text}`), refusal("linkMalformed"), text);
    assert.throws(() => take(`${origin}/phone/#${text}`), refusal("linkMalformed"), text);
  }
  assert.throws(() => readActivation(`twoefay://enroll?${query()}`));
  assert.ok(!isLink("https://phone.example.com/phone/") && !isLink(`http://phone.example.com/phone/#${query()}`));
});
