// Written by dev/embed-pages from Assets/calls.js. Do not edit.
extension PageFile {
    static let callsJS = PageFile(
        "calls.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The requests of a phone to the relay. They carry DPoP proofs, because a page cannot choose a client certificate.

            import { dpop } from "./signing.js";

            /**
             * A failed call. `kind` is `lost` (the outcome at the relay is unknown), `refused` (it answered with a `status`, a `code`
             * and perhaps seconds in `retryAfter`), or `unable` (a local fault, before anything was sent).
             */
            export class CallFailure extends Error {
              constructor(kind, message, { status = 0, code = null, retryAfter = null, body = {} } = {}) {
                super(message);
                Object.assign(this, { kind, status, code, retryAfter, body });
              }

              /** Whether to retry later: the relay was not reached, did not answer, or said to wait. */
              get mayPass() {
                return this.kind === "lost" || [429, 500, 502, 503, 504].includes(this.status);
              }
            }

            /** The failure for an answer that is not a refusal but does not follow the protocol. */
            export const odd = (answer, what) =>
              new CallFailure("refused", `the relay answered ${answer.status} ${what}`, { status: answer.status });

            /** The body of a successful answer; throws `CallFailure` otherwise. */
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
             * of the phone is only for the dashboard, which shows the sender. `language` returns the language that the person chose.
             */
            export const throughBackend = (number, language) => async (path, { method, fields, body, signal }) => {
              // The page's server accepts only GET and POST.
              const headers = {
                ...fields,
                "content-type": "application/json",
                "accept-user-language": language(),
                "x-method": method,
                "x-phone": number,
              };
              const response = await fetch(`/relay${path}`, { method: "POST", headers, body, signal, cache: "no-store" });
              return { status: response.status, field: (name) => response.headers.get(name), text: await response.text() };
            };

            export class RelayLine {
              #nonce = null;

              /** `phone` has relay, jwk and key; `carry` sends one request; `now` is the phone's clock, in milliseconds. */
              constructor(phone, carry, now = Date.now) {
                Object.assign(this, { phone, carry, now });
              }

              /** Sends a request, with a proof unless `proved` is false, and returns every answer, including refusals. */
              async send(path, { method = "POST", body = {}, fields = {}, proved = true, signal } = {}) {
                for (let attempt = 1; ; attempt += 1) {
                  const used = this.#nonce;
                  const { phone } = this;
                  const proof = proved ? { dpop: await dpop(phone, method, phone.relay + path, used, this.now()) } : {};
                  const answer = await this.#carry(path, method, JSON.stringify(body), { ...fields, ...proof }, signal);
                  const fresh = answer.field("dpop-nonce");
                  if (fresh) this.#nonce = fresh;
                  // The first proof has no nonce, or an old one: try again with the new one.
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

            /** The object in a body; null if the body is not one. */
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
