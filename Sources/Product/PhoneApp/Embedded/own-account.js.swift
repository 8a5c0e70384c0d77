// Written by dev/embed-pages from Assets/own-account.js. Do not edit.
extension AppFile {
    static let ownAccountJS = AppFile(
        "own-account.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The own account of a person: the phones, the code factors and the last logins. It comes
            // to a bound phone, and to a page that a link from a mail has opened, which needs no phone.

            import { decode, moment } from "./bytes.js";
            import { CallFailure, accepted, odd } from "./calls.js";
            import { isID, readContext } from "./context.js";

            const longestLink = 4096;
            const mostLogins = 50;
            /** The time after its end for which a login can be reported, in milliseconds. */
            const reportable = 24 * 3600 * 1000;

            /**
             * Reads the fragment of an address: {link} if it is one to an account, with null for a damaged one;
             * null if it is about something else.
             */
            export function readAccountLink(fragment) {
              if (!fragment.startsWith("account=")) return null;
              const link = fragment.slice("account=".length);
              return { link: /^[\w-]+\.[\w-]+\.[\w-]+$/.test(link) && link.length <= longestLink ? link : null };
            }

            export const isRevocationCode = (text) => /^[A-Za-z0-9_-]{20}$/.test(text);

            /** Removes the phone with this code, if there is one; the relay does not say whether there was. */
            export async function revoke(line, code) {
              accepted(await line.send("/revoke", { body: { revocation_code: code }, proved: false }));
            }

            /** The account as a bound phone sees it. */
            export class PhoneAccount {
              constructor(responder) {
                this.responder = responder;
              }

              get line() {
                return this.responder.line;
              }

              async fetch() {
                return readAccount(await this.line.send("/account", { method: "GET" }), this.responder.phone.website);
              }

              /**
               * Reports a login by a signed decision; false if it can no longer be reported. The same statement
               * is sent again after a lost answer.
               */
              async report(login) {
                login.signed ??= await this.responder.sign(login.question, { word: "fraud" });
                try {
                  await this.responder.send(login.signed);
                } catch (error) {
                  // The login has ended, so the report does not decide it. It counts for a day.
                  if (error.status === 409) return login.endedAt !== null && this.line.now() < login.endedAt + reportable;
                  if (error.status === 404) return false;
                  throw error;
                }
                return true;
              }
            }

            /** The account as the link of a mail shows it. The link stays in memory. */
            export class LinkedAccount {
              constructor(link, line) {
                Object.assign(this, { link, line });
              }

              async fetch() {
                return readAccount(await this.line.send("/account", { body: { link: this.link }, proved: false }));
              }

              async report({ challenge }) {
                const answer = await this.line.send("/account/report", { body: { link: this.link, challenge }, proved: false });
                if (answer.status === 404 || answer.status === 409) return false;
                accepted(answer);
                return true;
              }
            }

            const isText = (value) => typeof value === "string" && value !== "";
            const text = (value) => (isText(value) ? value : null);

            /** Reads the answer; entries without what every entry has are left out. `website` is the phone's. */
            export function readAccount(answer, website = null) {
              const { username, website: name, display_name: displayName, devices, factors, logins } = accepted(answer);
              if (![username, name, displayName].every(isText)) throw odd(answer, "without the names of the account");
              if (website !== null && name !== website) throw odd(answer, "with the account at another website");
              if (![devices, factors, logins].every(Array.isArray)) throw odd(answer, "without the lists of the account");
              return {
                username, website: name, displayName,
                devices: devices.filter((one) => isID(one?.device)).map(readDevice),
                factors: factors.filter((one) => isText(one?.kind)).map(readFactor),
                logins: logins.filter((one) => isID(one?.challenge) && moment(one.created_at) !== null && isText(one.login))
                  .slice(0, mostLogins).map((one) => readLogin(one, name)),
              };
            }

            const readDevice = (one) => ({
              device: one.device, name: text(one.name), platform: text(one.platform), state: text(one.state),
              createdAt: moment(one.created_at), seenAt: moment(one.last_seen_at), isThis: one.this === true,
            });

            const readFactor = (one) => ({
              kind: one.kind, state: text(one.state), createdAt: moment(one.created_at), address: text(one.address),
              left: Number.isInteger(one.left) && one.left >= 0 ? one.left : null,
            });

            const readLogin = (one, website) => ({
              challenge: one.challenge, createdAt: moment(one.created_at), endedAt: moment(one.ended_at), outcome: one.login,
              reason: text(one.reason), factor: text(one.factor), device: text(one.device), service: text(one.service),
              action: text(one.action), ip: text(one.ip), place: text(one.place), userAgent: text(one.user_agent),
              question: readReport(one, website), isReportable: one.can_report === true,
            });

            /** What a report of this phone signs; null if the login cannot be reported, or not be shown whole. */
            function readReport({ challenge, report }, website) {
              const bytes = typeof report?.nonce === "string" ? decode(report.context) : null;
              if (bytes === null) return null;
              try {
                const context = readContext(bytes);
                return context.website === website ? { challenge, nonce: report.nonce, bytes, context } : null;
              } catch {
                return null;
              }
            }

            /** Whether a failure says that the relay has no such route: it is older than this app. */
            export const isUnknownRoute = (error) => error instanceof CallFailure && error.status === 404;

            """#)
}
