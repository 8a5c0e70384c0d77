// Written by dev/embed-pages from Assets/calls.js. Do not edit.
extension PageFile {
    static let callsJS = PageFile(
        "calls.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // One phone's way to the relay: proved by DPoP, since a page cannot choose a client certificate.

            import { dpop } from "./signing.js";

            /**
             * Why a call came to nothing. `kind`: `lost` (nobody knows what the relay has done), `refused` (it answered with a
             * `status`, a `code` and perhaps seconds in `retryAfter`), or `unable` (our own affair, before anything was sent).
             */
            export class CallFailure extends Error {
              constructor(kind, message, { status = 0, code = null, retryAfter = null, body = {} } = {}) {
                super(message);
                Object.assign(this, { kind, status, code, retryAfter, body });
              }

              /** Worth another try, later: it was not reached, said nothing, or asked for patience. */
              get mayPass() {
                return this.kind === "lost" || [429, 500, 502, 503, 504].includes(this.status);
              }
            }

            /** No refusal, and not what was agreed either. */
            export const odd = (answer, what) =>
              new CallFailure("refused", `the relay answered ${answer.status} ${what}`, { status: answer.status });

            /** The body of an answer that is no refusal; throws `CallFailure`. */
            export function accepted(answer) {
              if (answer.status >= 200 && answer.status < 300) {
                if (answer.body === null) throw odd(answer, "not with a JSON object");
                return answer.body;
              }
              const body = answer.body ?? {};
              const words = [body.code, body.detail ?? body.title].filter((word) => typeof word === "string").join(": ");
              const seconds = /^\d{1,6}$/.exec(answer.field("retry-after") ?? "");
              throw new CallFailure("refused", `the relay answered ${answer.status}, ${words}`, {
                status: answer.status,
                code: typeof body.code === "string" ? body.code : null,
                retryAfter: seconds ? Number(seconds[0]) : null,
                body,
              });
            }

            /**
             * Sends requests through the demo's server, which forwards them unchanged. It has none of the phone's keys. The number
             * of the phone is only for the dashboard, which shows the sender.
             */
            export const throughBackend = (number) => async (path, { method, fields, body, signal }) => {
              // The page's server accepts only GET and POST.
              const headers = { ...fields, "content-type": "application/json", "x-method": method, "x-phone": number };
              const response = await fetch(`/relay${path}`, { method: "POST", headers, body, signal, cache: "no-store" });
              return { status: response.status, field: (name) => response.headers.get(name), text: await response.text() };
            };

            export class RelayLine {
              #nonce = null;

              /** `phone` has relay, jwk and key; `carry` sends one request; `now` is the phone's clock, in milliseconds. */
              constructor(phone, carry, now = Date.now) {
                Object.assign(this, { phone, carry, now });
              }

              /** Whatever the relay answers comes back, refusals too. With a proof, unless the call does without. */
              async send(path, { method = "POST", body = {}, fields = {}, proved = true, signal } = {}) {
                for (let attempt = 1; ; attempt += 1) {
                  const used = this.#nonce;
                  const { phone } = this;
                  const proof = proved ? { dpop: await dpop(phone, method, phone.relay + path, used, this.now()) } : {};
                  const answer = await this.#carry(path, method, JSON.stringify(body), { ...fields, ...proof }, signal);
                  const fresh = answer.field("dpop-nonce");
                  if (fresh) this.#nonce = fresh;
                  // The first proof has no nonce yet, or one that is too old by now: once more, with the one that came.
                  if (!proved || answer.status !== 401 || !fresh || fresh === used || attempt > 1) return answer;
                }
              }

              async #carry(path, method, body, fields, signal) {
                let answer;
                try {
                  answer = await this.carry(path, { method, fields, body, signal });
                } catch (error) {
                  throw new CallFailure("lost", `the relay gave no answer: ${error.message}`);
                }
                return { status: answer.status, field: answer.field, body: objectIn(answer.text) };
              }
            }

            /** Null where a body is there and is none. */
            function objectIn(text) {
              if (text === "") return {};
              try {
                const value = JSON.parse(text);
                return value !== null && typeof value === "object" && !Array.isArray(value) ? value : null;
              } catch {
                return null;
              }
            }

            """#)
}
