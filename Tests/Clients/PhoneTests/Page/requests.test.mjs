// How the page handles challenges and the results of its answers. No test depends on a clock.
import { test } from "node:test";
import assert from "node:assert/strict";

const { CallFailure } = await import("./calls.js");
const { Requests, deliver } = await import("./requests.js");

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
    refused: (one) => heard.refused.push(one.id),
  });
  requests.addEventListener("change", () => { heard.changes += 1; });
  return { requests, heard };
}

test("what is asked is there until it is not asked any more", async () => {
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

test("of two phones each has its own, and what is over by the clock is over", async () => {
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

test("a phone that the relay knows no more is told so, and asks no more", async () => {
  const { requests, heard } = asked(refusal(401));
  await requests.wake([phone]);
  assert.deepEqual([heard.refused, heard.wishes.length], [["p1"], 1]);
});

test("a request on the screen is held, and names what is known", async () => {
  const { requests, heard } = asked(found([question("c1")]), found([]));
  await requests.wake([phone]);
  const leaving = new AbortController();
  requests.addEventListener("change", () => leaving.abort());
  await requests.watch(phone, leaving.signal);
  const { seconds, known } = heard.wishes[1];
  assert.deepEqual([seconds, known, heard.wishes.length], [15, ["c1"], 2]);
});

test("an answer comes to what the relay says of it", async () => {
  const entry = { question: question("c1"), until: performance.now() + 60_000 };
  const outcome = (answer) => deliver(
    {
      sign: async (_, decision) => decision,
      send: async (decision) => {
        assert.equal(decision.word, "approve");
        if (answer instanceof Error) throw answer;
        return answer;
      },
    }, entry, { word: "approve" }, () => assert.fail("nothing was lost"));
  assert.deepEqual(await outcome("failure"), { login: "failure", isLate: false });
  assert.deepEqual(await outcome(refusal(409, { login: "success" })), { login: "success", isLate: true });
  assert.deepEqual(await outcome(refusal(409)), { login: "failure", isLate: true });
  assert.equal(await outcome(refusal(404)), null);
  await assert.rejects(outcome(refusal(403)), CallFailure);
});

test("an answer that is lost when time is over is not sent again", async () => {
  let troubles = 0;
  const responder = { sign: async () => ({}), send: async () => { throw new CallFailure("lost", "gone"); } };
  const entry = { question: question("c1"), until: performance.now() };
  assert.equal(await deliver(responder, entry, { word: "deny" }, () => { troubles += 1; }), null);
  assert.equal(troubles, 1);
});
