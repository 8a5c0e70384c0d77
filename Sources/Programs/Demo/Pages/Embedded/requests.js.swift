// Written by dev/embed-pages from Assets/requests.js. Do not edit.
extension PageFile {
    static let requestsJS = PageFile(
        "requests.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The open requests of this phone, for all websites at which it is bound.

            import { CallFailure } from "./calls.js";

            /** The longest time that the demo's server holds a request, in seconds. */
            const longestWait = 15;

            export const pause = (seconds, signal) =>
              new Promise((resolve) => {
                const timer = setTimeout(resolve, seconds * 1000);
                signal?.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
              });

            /** The back-off after consecutive failures: 2, 4, 8 … 30 seconds, or longer if the relay says so. */
            export const backoff = (troubles, error) => Math.max(Math.min(30, 2 ** troubles), error?.retryAfter ?? 0);

            /** Dispatches `change` when a request is added or removed. */
            export class Requests extends EventTarget {
              #open = new Map();
              #asking = new Map();

              /** `responder(phone)` makes a responder, `troubled(isLost)` reports a lost relay, `refused(phone)` an unbound phone. */
              constructor({ responder, troubled, refused }) {
                super();
                Object.assign(this, { responder, troubled, refused });
              }

              /** The requests {phone, question, until}, oldest first. One that must not be answered has a `reason` and no question. */
              get open() {
                for (const [challenge, { until }] of this.#open) if (until <= performance.now()) this.#open.delete(challenge);
                return [...this.#open.values()];
              }

              find(challenge) {
                return this.open.find((entry) => entry.challenge === challenge && entry.question) ?? null;
              }

              /** Lists the requests of each phone after a push, at start, or when the user wants it. Repeats until the relay answers. */
              async wake(phones) {
                await Promise.all(phones.map((phone) => {
                  // Ends an earlier attempt that waits for its retry.
                  this.#asking.get(phone.id)?.abort();
                  const asking = new AbortController();
                  this.#asking.set(phone.id, asking);
                  return this.#ask(phone, asking.signal);
                }));
              }

              /** Polls while a request is on the screen, to learn when it is closed; until `signal`. */
              async watch(phone, signal) {
                while (!signal.aborted) {
                  const known = this.open.filter((entry) => entry.phone.id === phone.id && entry.challenge).map(({ challenge }) => challenge);
                  // The request on the screen was closed. A poll that waits for others would outlive this page at the relay.
                  if (known.length === 0) return;
                  const start = performance.now();
                  const isNew = await this.#ask(phone, signal, { seconds: longestWait, known });
                  // Two pages of one phone would end each other's held request again and again.
                  if (!isNew && performance.now() - start < 2000) await pause(2, signal);
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

              /** Lists the requests of one phone; returns whether anything is new. */
              async #ask(phone, signal, options = {}) {
                for (let troubles = 0; !signal.aborted; ) {
                  try {
                    const found = await this.responder(phone).pending({ ...options, signal });
                    if (signal.aborted) return false;
                    this.troubled(false);
                    return this.#take(phone, found);
                  } catch (error) {
                    if (!(error instanceof CallFailure)) throw error;
                    if (signal.aborted) return false;
                    if (error.status === 401) return this.refused(phone);
                    troubles += 1;
                    this.troubled(error.mayPass);
                    // A fault of this page does not pass by itself, but the relay's refusal may.
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
                this.#tell();
                return isNew;
              }

              #tell() {
                this.dispatchEvent(new Event("change"));
              }
            }

            /**
             * Sends an answer until the relay has it or the request expires. Returns {login, isLate}, where `isLate` means that another
             * answer was faster, or null if the request is closed. `troubled` is called for each failed attempt.
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

            """#)
}
