// How the app handles challenges and the results of its answers. No test depends on a clock.
import { test } from "node:test";
import assert from "node:assert/strict";
import { asset } from "./assets.mjs";

const { CallFailure } = await import(asset("calls.js"));
const { Requests, backoff, deliver } = await import(asset("requests.js"));
const { Seen } = await import(asset("seen.js"));
const { fingerprint, changedFiles } = await import(asset("version.js"));
const { coarse, locate } = await import(asset("place.js"));
const { mustInstallFirst, systemName } = await import(asset("capabilities.js"));

const phone = { id: "p1" };
const question = (challenge, timeLeft = 60_000) => ({ challenge, timeLeft, context: {} });
const found = (questions, refused = []) =>
  ({ questions, refused, challenges: [...questions, ...refused].map((one) => one.challenge).filter(Boolean) });
const refusal = (status, body = {}) => new CallFailure("refused", "no", { status, body });

/** Pages that the relay answers in turn. */
function asked(...pages) {
  const heard = { troubles: [], refused: [], changes: 0, wishes: [] };
  const requests = new Requests({
    responder: () => ({
      pending: async (wish) => {
        heard.wishes.push(wish);
        const page = pages.shift();
        if (page instanceof Error) throw page;
        return page;
      },
    }),
    troubled: (is) => heard.troubles.push(is),
    refused: async (one) => { heard.refused.push(one.id); return false; },
  });
  requests.addEventListener("change", () => { heard.changes += 1; });
  return { requests, heard };
}

test("a request is there until the relay lists it no more", async () => {
  const { requests, heard } = asked(
    found([question("c1"), question("c2")]), found([question("c2")], [{ challenge: "c3", message: "odd" }]), found([]));
  await requests.wake([phone]);
  const first = requests.find("c2");
  assert.deepEqual(requests.open.map(({ challenge }) => challenge), ["c1", "c2"]);
  await requests.wake([phone]);
  // A challenge that is on the screen stays unchanged.
  assert.equal(requests.find("c2"), first);
  assert.deepEqual([requests.find("c1"), requests.find("c3")], [null, null]);
  assert.deepEqual(requests.open.map(({ reason }) => reason), [undefined, "odd"]);
  await requests.wake([phone]);
  assert.deepEqual(requests.open, []);
  assert.deepEqual([heard.changes, heard.troubles], [3, [false, false, false]]);
});

test("each phone has its own requests, and one whose time is over is gone", async () => {
  const other = { id: "p2" };
  const { requests } = asked(found([question("c1")]), found([question("c2"), question("c3", 0)]), found([]));
  await requests.wake([phone]);
  await requests.wake([other]);
  assert.deepEqual(requests.open.map(({ challenge }) => challenge), ["c1", "c2"]);
  await requests.wake([phone]);
  assert.deepEqual(requests.open.map(({ challenge }) => challenge), ["c2"]);
  requests.closeAll(other);
  assert.deepEqual(requests.open, []);
});

test("requests are followed: at once, then held with what is known, until the relay refuses", async () => {
  const { requests, heard } = asked(found([question("c1")]), found([question("c1"), question("c2")]), refusal(401));
  await requests.follow(phone, new AbortController().signal);
  assert.deepEqual(heard.wishes.map(({ seconds, known }) => [seconds, known]), [[0, []], [60, ["c1"]], [60, ["c1", "c2"]]]);
  assert.deepEqual(heard.refused, ["p1"]);
});

test("failures are waited for longer and longer, or as long as the relay says", () => {
  assert.deepEqual([1, 2, 3, 4, 5, 9].map((one) => backoff(one)), [2, 4, 8, 16, 30, 30]);
  assert.equal(backoff(1, { retryAfter: 60 }), 60);
});

test("an answer comes to what the relay says of it", async () => {
  const outcome = (answer) => deliver({
    send: async (signed) => {
      assert.equal(signed, "signed");
      if (answer instanceof Error) throw answer;
      return answer;
    },
  }, "signed", performance.now() + 60_000, () => assert.fail("nothing was lost"));
  assert.deepEqual(await outcome("failure"), { login: "failure", isLate: false });
  assert.deepEqual(await outcome(refusal(409, { login: "success" })), { login: "success", isLate: true });
  assert.deepEqual(await outcome(refusal(409)), { login: "failure", isLate: true });
  assert.equal(await outcome(refusal(404)), null);
  await assert.rejects(outcome(refusal(403)), CallFailure);
});

test("an answer that is lost when time is over is not sent again", async () => {
  let troubles = 0;
  const responder = { send: async () => { throw new CallFailure("lost", "gone"); } };
  assert.equal(await deliver(responder, {}, performance.now(), () => { troubles += 1; }), null);
  assert.equal(troubles, 1);
});

test("a request is whole when both ends of every part were in view", () => {
  let [tell, changes, watched] = [null, 0, 0];
  class Observer {
    constructor(take) { tell = take; }
    observe() { watched += 1; }
    unobserve() { watched -= 1; }
    disconnect() { watched = 0; }
  }
  const box = (top, bottom) => ({ top, bottom, height: bottom - top });
  const see = (target, top, bottom, shown) => tell([{ target, isIntersecting: true, boundingClientRect: box(top, bottom), intersectionRect: box(...shown) }]);
  const seen = new Seen(["small", "tall"], () => { changes += 1; }, Observer);
  assert.ok(!seen.isWhole);
  seen.start({});
  assert.equal(watched, 2);
  see("small", 10, 50, [10, 30]);
  assert.deepEqual([seen.isWhole, seen.next, changes], [false, "small", 0]);
  see("small", 10, 50, [10, 50]);
  assert.deepEqual([seen.next, changes], ["tall", 1]);
  see("tall", 100, 1000, [100, 500]);
  tell([{ target: "tall", isIntersecting: false, boundingClientRect: box(100, 1000), intersectionRect: box(0, 0) }]);
  assert.ok(!seen.isWhole);
  see("tall", -500, 400, [0, 400]);
  assert.deepEqual([seen.isWhole, seen.next, changes, watched], [true, null, 2, 0]);
});

test("a version is named by all of its files", async () => {
  const old = { files: { "/phone/a.js": "1", "/phone/b.js": "2" } };
  assert.equal(await fingerprint(old), await fingerprint({ version: "other", files: { "/phone/b.js": "2", "/phone/a.js": "1" } }));
  // printf '/phone/a.js 1\n/phone/b.js 2\n' | sha256sum
  assert.equal((await fingerprint(old)).replaceAll(" ", ""), (await sha256("/phone/a.js 1\n/phone/b.js 2\n")).slice(0, 32));
  assert.deepEqual(changedFiles(old, { files: { "/phone/a.js": "1", "/phone/b.js": "3", "/phone/c.js": "4" } }), ["/phone/b.js", "/phone/c.js"]);
});

async function sha256(text) {
  const { createHash } = await import("node:crypto");
  return createHash("sha256").update(text).digest("hex");
}

test("a tab on iOS must be installed first, and nothing else", () => {
  const scope = (userAgent, more = {}) => ({
    navigator: { userAgent, platform: "", maxTouchPoints: 0, ...more }, matchMedia: () => ({ matches: false }),
  });
  const iphone = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Mobile/15E148 Safari/604.1";
  assert.ok(mustInstallFirst(scope(iphone)));
  assert.ok(mustInstallFirst(scope("Macintosh", { platform: "MacIntel", maxTouchPoints: 5 })));
  assert.ok(!mustInstallFirst(scope(iphone, { standalone: true })));
  assert.ok(!mustInstallFirst({ ...scope(iphone), matchMedia: () => ({ matches: true }) }));
  assert.ok(!mustInstallFirst(scope("Macintosh", { platform: "MacIntel" })) && !mustInstallFirst(scope("Android")));
  assert.deepEqual([systemName(scope(iphone).navigator), systemName(scope("X11; Linux").navigator)], ["iOS", "Linux"]);
});

test("a place is rounded to one decimal, and left out if it is not known well enough", async () => {
  const at = (latitude, longitude, accuracy = 50_000) => coarse({ latitude, longitude, accuracy });
  const expected = [
    [52.5163, 13.3777, "52.5,13.4"], [-33.86, 151.25, "-33.9,151.3"], [-0.04, 0.04, "0.0,0.0"], [0, -0.051, "0.0,-0.1"],
    [90, -180, "90.0,-180.0"], [89.96, 179.96, "90.0,180.0"],
  ];
  for (const [latitude, longitude, text] of expected) assert.equal(at(latitude, longitude), text);
  for (const one of [at(1, 1, 50_001), at(1, 1, NaN), at(1, 1, -1), at(91, 0), at(0, 181), at(NaN, 0), at(0, undefined)]) assert.equal(one, null);
  const asked = (answer) => locate({ getCurrentPosition: answer });
  assert.equal(await asked((found) => found({ coords: { latitude: 1.26, longitude: 2, accuracy: 9 } })), "1.3,2.0");
  assert.equal(await asked((found, failed) => failed({ code: 1 })), null);
  assert.equal(await locate(undefined), null);
});
