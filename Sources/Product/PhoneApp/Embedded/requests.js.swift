// Written by dev/embed-pages from Assets/requests.js. Do not edit.
extension AppFile {
    static let requestsJS = AppFile(
        "requests.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The open requests of this phone, for all websites at which it is bound.

            import { CallFailure } from "./calls.js";

            /** The longest time that a relay holds a request, in seconds. */
            const longestWait = 60;

            export const pause = (seconds, signal) =>
              new Promise((resolve) => {
                if (signal?.aborted) return resolve();
                const timer = setTimeout(resolve, seconds * 1000);
                signal?.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
              });

            /**
             * The back-off after consecutive failures: 2, 4, 8 … 30 seconds, or longer if the relay says so.
             */
            export const backoff = (troubles, error) => Math.max(Math.min(30, 2 ** troubles), error?.retryAfter ?? 0);

            /** Dispatches `change` when a request is added or removed. */
            export class Requests extends EventTarget {
              #open = new Map();
              #asking = new Map();

              /**
               * `responder(phone)` makes a responder, `troubled(isLost, phone)` reports a lost relay,
               * `refused(phone, error)` an unbound phone or a wrong clock; it returns whether to ask again.
               * `wait` is the time for which the relay holds requests.
               */
              constructor({ responder, troubled, refused, wait = longestWait }) {
                super();
                Object.assign(this, { responder, troubled, refused, wait });
              }

              /**
               * The requests {challenge, phone, question, until}, oldest first. A request that must not be
               * answered has a `reason` and no question.
               */
              get open() {
                for (const [challenge, { until }] of this.#open) if (until <= performance.now()) this.#open.delete(challenge);
                return [...this.#open.values()];
              }

              find(challenge) {
                return this.open.find((entry) => entry.challenge === challenge && entry.question) ?? null;
              }

              /**
               * Lists the requests of each phone once, after a push, at start, or when the person wants it.
               * Repeats until the relay answers.
               */
              async wake(phones) {
                await Promise.all(phones.map((phone) => {
                  // Ends an earlier attempt that waits for its retry.
                  this.#asking.get(phone.id)?.abort();
                  const asking = new AbortController();
                  this.#asking.set(phone.id, asking);
                  return this.#ask(phone, asking.signal);
                }));
              }

              /**
               * Follows the requests of one phone by held requests, one after the other, until `signal` or
               * until the relay refuses the phone. The first one is not held, so that the list is there at
               * once.
               */
              async follow(phone, signal) {
                let seconds = 0;
                while (!signal.aborted) {
                  const start = performance.now();
                  const known = this.open.filter((entry) => entry.phone.id === phone.id && entry.challenge).map(({ challenge }) => challenge);
                  const isNew = await this.#ask(phone, signal, { seconds, known });
                  if (isNew === null) return;
                  // Two pages of one phone would end each other's held request again and again.
                  if (seconds > 0 && !isNew && performance.now() - start < 2000) await pause(2, signal);
                  seconds = this.wait;
                }
              }

              /** Removes an answered request. */
              close(challenge) {
                this.#open.delete(challenge);
                this.#tell();
              }

              closeAll(phone) {
                for (const [challenge, entry] of this.#open) if (entry.phone.id === phone.id) this.#open.delete(challenge);
                this.#tell();
              }

              /** Lists the requests of one phone; returns whether anything is new, or null if it is refused. */
              async #ask(phone, signal, options = {}) {
                for (let troubles = 0; !signal.aborted; ) {
                  try {
                    const found = await this.responder(phone).pending({ ...options, signal });
                    if (signal.aborted) return false;
                    this.troubled(false, phone);
                    return this.#take(phone, found);
                  } catch (error) {
                    if (!(error instanceof CallFailure)) throw error;
                    if (signal.aborted) return false;
                    if (error.status === 401 && !(await this.refused(phone, error))) return null;
                    troubles += 1;
                    this.troubled(error.mayPass, phone);
                    // A fault of this page does not pass by itself, but the relay's refusal may. After a 401
                    // that is asked again, the clock was corrected.
                    await pause(backoff(error.mayPass || error.status === 401 ? troubles : 5, error), signal);
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
                  // A request on the screen must not change: its bytes will be signed.
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
                if (isNew) this.#tell();
                return isNew;
              }

              #tell() {
                this.dispatchEvent(new Event("change"));
              }
            }

            /**
             * Sends a signed answer until the relay has it or the request expires. Returns {login, isLate},
             * where `isLate` means that another answer was faster, or null if the request is closed. `troubled`
             * is called for each failed attempt.
             */
            export async function deliver(responder, signed, until, troubled) {
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

            """#)
}
