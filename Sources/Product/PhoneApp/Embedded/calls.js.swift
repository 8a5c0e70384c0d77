// Written by dev/embed-pages from Assets/calls.js. Do not edit.
extension AppFile {
    static let callsJS = AppFile(
        "calls.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The requests of a phone to the relay. They carry DPoP proofs, because a page cannot choose a
            // client certificate.

            import { dpop } from "./signing.js";

            /**
             * A failed call. `kind` is `lost` (the outcome at the relay is unknown), `refused` (it answered
             * with a `status`, a `code` and perhaps seconds in `retryAfter`), or `unable` (a local fault,
             * before anything was sent).
             */
            export class CallFailure extends Error {
              constructor(kind, message, { status = 0, code = null, retryAfter = null, body = {}, date = null } = {}) {
                super(message);
                Object.assign(this, { kind, status, code, retryAfter, body, date });
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
                date: answer.field("date"),
              });
            }

            /**
             * Sends requests to the relay at the origin `at`. `language` returns the language that the person
             * chose. Nothing but the proof identifies the phone: no cookies, no cache, no referrer.
             */
            export const direct = (at, language) => async (path, { method, fields, body, signal }) => {
              const headers = { ...fields, "accept-user-language": language() };
              if (body !== undefined) headers["content-type"] = "application/json";
              const response = await fetch(at + path, {
                method, headers, body, signal,
                cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer",
              });
              return { status: response.status, field: (name) => response.headers.get(name), text: await response.text() };
            };

            export class RelayLine {
              #nonce = null;
              #notices = 0;

              /**
               * `phone` has at, jwk and key; `carry` sends one request; `now` is the phone's clock in
               * milliseconds, corrected for this relay. `heard` gets the number of unread notices.
               */
              constructor(phone, carry, { now = Date.now, heard = () => {} } = {}) {
                Object.assign(this, { phone, carry, now, heard });
              }

              /**
               * Sends a request, with a proof unless `proved` is false, and returns every answer, including
               * refusals.
               */
              async send(path, { method = "POST", body = {}, fields = {}, proved = true, signal } = {}) {
                const text = method === "POST" ? JSON.stringify(body) : undefined;
                for (let attempt = 1; ; attempt += 1) {
                  const used = this.#nonce;
                  const { phone } = this;
                  const proof = proved ? { dpop: await dpop(phone, method, (phone.at ?? phone.relay) + path, used, this.now()) } : {};
                  const answer = await this.#carry(path, method, text, { ...fields, ...proof }, signal);
                  const fresh = answer.field("dpop-nonce");
                  if (fresh) this.#nonce = fresh;
                  if (proved && answer.status !== 401) this.#hear(Number(answer.field("x-messagecount") ?? "0"));
                  // The first proof has no nonce, or an old one: try again with the new one.
                  if (!proved || answer.status !== 401 || !fresh || fresh === used || attempt > 1) return answer;
                }
              }

              #hear(count) {
                if (count === this.#notices || !Number.isInteger(count)) return;
                this.#notices = count;
                this.heard(count);
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
