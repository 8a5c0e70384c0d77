// Written by dev/embed-pages from Assets/device.js. Do not edit.
extension PageFile {
    static let deviceJS = PageFile(
        "device.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // A phone at one website, as docs/phones/device-protocol.md specifies: it is bound, lists requests and answers them.
            //
            // A phone is a plain object that IndexedDB can store: {id, relay, pin, website, token, jwk, key, agreement, agreementKey,
            // pushToken, name, madeAt, state}. `key`, which signs, and `agreementKey`, to which the relay seals secrets, are CryptoKeys
            // that cannot be read; `jwk` and `agreement` are their public keys. `state` is `asked`, with code and perhaps websiteKey, or `bound`, with device.

            import { accepted, odd } from "./calls.js";
            import { Refused, isID, readQuestion } from "./context.js";
            import { moment } from "./bytes.js";
            import * as signing from "./signing.js";

            /** The largest number of known challenges that the relay accepts. */
            const mostKnown = 16;

            /** Makes the phone for an activation. Store it before it is bound: the relay binds a key only once. */
            export async function beginEnrolment(activation, { name, pushToken }, now = Date.now()) {
              const { privateKey, publicKey } = await signing.makeKey();
              const jwk = await signing.jwkOf(publicKey);
              const agreement = await signing.makeAgreementKey();
              return {
                id: await signing.thumbprint(jwk),
                relay: activation.relay,
                pin: activation.pin,
                website: activation.website,
                token: activation.token,
                jwk,
                key: privateKey,
                agreement: await signing.jwkOf(agreement.publicKey),
                agreementKey: agreement.privateKey,
                pushToken,
                name,
                madeAt: now,
                state: "asked",
                code: activation.code,
                websiteKey: activation.k ? await signing.holdWebsiteKey(activation.k) : null,
              };
            }

            /** Whether this phone was made for that activation. */
            export const isFor = (phone, activation) =>
              phone.state === "asked" && ["relay", "website", "token", "code", "pin"].every((name) => phone[name] === activation[name]);

            /** Sends a new key with its code until the relay has bound it. All attempts are the same. */
            export class Enroller {
              #body = null;

              constructor(phone, line) {
                Object.assign(this, { phone, line });
              }

              /**
               * Returns {login: "verified", phone, revocationCode}, or {login: "wait", device, number} while the user has to approve
               * on another bound phone, with the number that this one shows.
               */
              async attempt() {
                this.#body ??= await this.#make();
                const answer = await this.line.send("/verify", { body: this.#body, proved: false });
                const { login, device, number, revocation_code: revocationCode } = accepted(answer);
                if (!isID(device)) throw odd(answer, "with a device that is none");
                if (login === "wait") {
                  if (number !== undefined && number !== null && !/^\d{1,9}$/.test(number)) throw odd(answer, "with a number that is none");
                  return { login, device, number: number ?? null };
                }
                if (login !== "verified" || !isID(revocationCode)) throw odd(answer, "with another login, or no revocation code");
                this.#check(answer);
                return { login, phone: this.#bound(device), revocationCode };
              }

              /**
               * Returns the bound phone after a refused attempt: an earlier attempt may have bound the key, and its answer was lost.
               * Null if the key belongs to no active phone, so that it may be deleted.
               */
              async boundUnheard() {
                const answer = await this.line.send("/device", { body: { certificate: true } });
                // A refused nonce, as after a restart of the relay, says nothing about the key.
                if (answer.status === 401 && !answer.field("www-authenticate")?.includes("use_dpop_nonce")) return null;
                const { device } = accepted(answer);
                if (!isID(device)) throw odd(answer, "with a device that is none");
                this.#check(answer);
                return this.#bound(device);
              }

              async #make() {
                const { phone } = this;
                const body = {
                  id_token: phone.token,
                  activation_code: phone.code,
                  proof: await signing.enrolment(phone, phone.code, this.line.now()),
                  platform: "ios",
                  environment: "production",
                };
                if (phone.pushToken) body.dev_token = phone.pushToken;
                if (phone.websiteKey) body.binding = await signing.binding(phone, phone.websiteKey);
                if (phone.name) body.name = phone.name;
                return body;
              }

              /** Checks the certificate. DPoP does not use it, but a certificate for another key is an invalid answer. */
              #check(answer) {
                // The authority of the phones may issue it later.
                if (answer.body.certificate === undefined) return;
                const lines = String(answer.body.certificate).split("\n").filter((line) => line !== "" && !line.startsWith("-----"));
                const point = ["x", "y"].map((name) => atob(this.phone.jwk[name].replaceAll("-", "+").replaceAll("_", "/"))).join("");
                let bytes = "";
                try {
                  bytes = atob(lines.join(""));
                } catch {
                  // It is not a certificate.
                }
                if (!bytes.includes(`\x04${point}`)) throw odd(answer, "with a certificate for another key");
              }

              /** The bound phone, without its code and the website's key. */
              #bound(device) {
                const { code, websiteKey, ...phone } = this.phone;
                return { ...phone, state: "bound", device };
              }
            }

            /** A bound phone: lists its requests, answers them, and updates its own data. */
            export class Responder {
              constructor(phone, line) {
                Object.assign(this, { phone, line });
              }

              /**
               * Returns {questions, refused, challenges}. With `seconds`, the relay holds the request that long until the list differs
               * from `known`.
               */
              async pending({ seconds = 0, known = [], signal } = {}) {
                const waits = seconds > 0;
                const answer = await this.line.send("/pending", {
                  body: waits && known.length > 0 ? { known: known.slice(0, mostKnown) } : {},
                  fields: waits ? { prefer: `wait=${seconds}` } : {},
                  signal,
                });
                const { pending, time } = accepted(answer);
                const now = moment(time);
                if (!Array.isArray(pending) || now === null) throw odd(answer, "without pending or time");
                const [questions, refused] = [[], []];
                for (const entry of pending) {
                  try {
                    questions.push(readQuestion(entry, this.phone.website, now));
                  } catch (error) {
                    if (!(error instanceof Refused)) throw error;
                    refused.push(error);
                  }
                }
                const challenges = [...questions, ...refused].map(({ challenge }) => challenge).filter((one) => one !== null);
                return { questions, refused, challenges };
              }

              /** Signs a decision, once. A repetition after a lost response sends the same answer. */
              async sign(question, decision) {
                const answer = await signing.decision(this.phone, question, decision, this.line.now());
                return { path: decision.word === "approve" ? "/success" : "/failure", body: { challenge: question.challenge, answer } };
              }

              /** Sends a signed answer and returns its result: `success` or `failure`. */
              async send(signed) {
                const answer = await this.line.send(signed.path, { body: signed.body });
                const { login } = accepted(answer);
                if (login !== "success" && login !== "failure") throw odd(answer, "with another login");
                return login;
              }

              async rename(name) {
                accepted(await this.line.send("/device", { body: { name } }));
                return { ...this.phone, name };
              }

              /** Changes the device token. With an empty one, the phone polls. */
              async movePush(token) {
                const statement = await signing.pushToken(this.phone, token, this.line.now());
                accepted(await this.line.send("/device", { body: { dev_token: statement } }));
                return { ...this.phone, pushToken: token };
              }

              /** Unbinds this phone at the relay. */
              async unbind() {
                accepted(await this.line.send("/device", { method: "DELETE" }));
              }
            }

            """#)
}
