// What is asked of this phone now, for all websites that it is bound to.

import { CallFailure } from "./calls.js";

/** The longest time that the demo's server holds a request, in seconds. */
const longestWait = 15;

export const pause = (seconds, signal) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal?.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
  });

/** After so many troubles in a row: 2, 4, 8 … 30 seconds, or what the relay says. */
export const backoff = (troubles, error) => Math.max(Math.min(30, 2 ** troubles), error?.retryAfter ?? 0);

/** Tells `change` whenever something is asked, or is not any more. */
export class Requests extends EventTarget {
  #open = new Map();
  #asking = new Map();

  /** `responder` makes one for a phone; `troubled` hears whether the relay is there; `refused` of a phone it knows no more. */
  constructor({ responder, troubled, refused }) {
    super();
    Object.assign(this, { responder, troubled, refused });
  }

  /** {phone, question, until}, the oldest first; with `reason` in place of a question where it must not be answered. */
  get open() {
    for (const [challenge, { until }] of this.#open) if (until <= performance.now()) this.#open.delete(challenge);
    return [...this.#open.values()];
  }

  find(challenge) {
    return this.open.find((entry) => entry.challenge === challenge && entry.question) ?? null;
  }

  /** As the push, the person or the start of the page says: asks the relay for each phone, until it answers. */
  async wake(phones) {
    await Promise.all(phones.map((phone) => {
      // Whoever waits for another try need not wait any more.
      this.#asking.get(phone.id)?.abort();
      const asking = new AbortController();
      this.#asking.set(phone.id, asking);
      return this.#ask(phone, asking.signal);
    }));
  }

  /** Holds a request while one of this phone's is on the screen, to learn that it is over; until `signal`. */
  async watch(phone, signal) {
    while (!signal.aborted) {
      const known = this.open.filter((entry) => entry.phone.id === phone.id && entry.challenge).map(({ challenge }) => challenge);
      const start = performance.now();
      const isNew = await this.#ask(phone, signal, { seconds: longestWait, known });
      // A second page of this phone would take the relay from the first, and the first from the second.
      if (!isNew && performance.now() - start < 2000) await pause(2, signal);
    }
  }

  /** What has been answered is asked no more. */
  close(challenge) {
    this.#open.delete(challenge);
    this.#tell();
  }

  closeAll(phone) {
    for (const [challenge, entry] of this.#open) if (entry.phone.id === phone.id) this.#open.delete(challenge);
    this.#tell();
  }

  /** Whether there was anything new. */
  async #ask(phone, signal, wish = {}) {
    for (let troubles = 0; !signal.aborted; ) {
      try {
        const found = await this.responder(phone).pending({ ...wish, signal });
        if (signal.aborted) return false;
        this.troubled(false);
        return this.#take(phone, found);
      } catch (error) {
        if (!(error instanceof CallFailure)) throw error;
        if (signal.aborted) return false;
        if (error.status === 401) return this.refused(phone);
        troubles += 1;
        this.troubled(error.mayPass);
        // A fault of this page's will not go by itself, but the relay may come to another mind.
        await pause(backoff(error.mayPass ? troubles : 5, error), signal);
      }
    }
    return false;
  }

  #take(phone, { questions, refused, challenges }) {
    let isNew = false;
    for (const [challenge, entry] of this.#open) {
      if (entry.phone.id !== phone.id || challenges.includes(challenge)) continue;
      this.#open.delete(challenge);
      isNew = true;
    }
    const now = performance.now();
    for (const question of questions) {
      // What is on the screen stays what it is: it is what will be signed.
      if (this.#open.has(question.challenge)) continue;
      const { challenge } = question;
      this.#open.set(challenge, { challenge, phone, question, until: now + question.timeLeft });
      isNew = true;
    }
    for (const { challenge, message } of refused) {
      const key = challenge ?? `unnamed ${phone.id}`;
      if (this.#open.has(key)) continue;
      this.#open.set(key, { challenge, phone, question: null, reason: message, until: now + 60_000 });
      isNew = true;
    }
    this.#tell();
    return isNew;
  }

  #tell() {
    this.dispatchEvent(new Event("change"));
  }
}

/**
 * Sends an answer until the relay has it, or time is over: {login, isLate} with `isLate` where another was faster, or null
 * where there is nothing to answer any more. `troubled` hears of attempts that came to nothing.
 */
export async function deliver(responder, { question, until }, decision, troubled) {
  const signed = await responder.sign(question, decision);
  for (let troubles = 1; ; troubles += 1) {
    try {
      return { login: await responder.send(signed), isLate: false };
    } catch (error) {
      if (error.status === 409) return { login: error.body.login === "success" ? "success" : "failure", isLate: true };
      if (error.status === 404) return null;
      if (!error.mayPass) throw error;
      troubled(error);
      if (performance.now() >= until) return null;
      await pause(backoff(troubles, error));
    }
  }
}
