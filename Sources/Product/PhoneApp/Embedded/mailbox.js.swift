// Written by dev/embed-pages from Assets/mailbox.js. Do not edit.
extension AppFile {
    static let mailboxJS = AppFile(
        "mailbox.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The notices of a website or the operator, and the recoveries of a lost factor, for one phone.

            import { decodeObject, moment } from "./bytes.js";
            import { accepted, odd } from "./calls.js";
            import { checked, isID } from "./context.js";
            import { audience, unverifiedClaims } from "./signing.js";

            const longestTitle = 200;
            const longestText = 1000;

            export class Mailbox {
              constructor(phone, line) {
                Object.assign(this, { phone, line });
              }

              /** Lists the notices that no phone of the user has fetched, the newest first. */
              async unread() {
                return this.#list("/messages");
              }

              async archived() {
                return this.#list("/messages/archive");
              }

              /**
               * Fetches a notice: {from, title, text, createdAt}; null if it was deleted. The relay signs it by
               * the certificate of the connection, which a page does not see: only the content is checked.
               */
              async read(message) {
                const answer = await this.line.send(`/messages/${encodeURIComponent(message)}`, { method: "GET" });
                if (answer.status === 404) return null;
                const { statement } = accepted(answer);
                const claims = unverifiedClaims(statement, "twoefay-message+jwt", decodeObject);
                const expected = { aud: audience(this.phone), id_token: this.phone.token, message };
                for (const [name, value] of Object.entries(expected)) {
                  if (claims?.[name] !== value) throw odd(answer, `with a notice whose ${name} is not as for this phone`);
                }
                const { from, title, text, created_at: createdAt } = claims;
                const isFit = typeof text === "string" && text.length <= 2 * longestText && typeof title === "string"
                  && title.length <= longestTitle && ["website", "operator"].includes(from) && moment(createdAt) !== null;
                if (!isFit) throw odd(answer, "with a notice that has not the form of version 1");
                try {
                  checked(title, "title");
                  for (const line of text.split("\n")) checked(line, "text");
                } catch (error) {
                  throw odd(answer, `with a notice that cannot be shown: ${error.message}`);
                }
                return { from, title, text, createdAt };
              }

              /** The open recoveries of states that this app knows. */
              async recoveries() {
                const answer = await this.line.send("/recovery", { method: "GET" });
                const { recoveries } = accepted(answer);
                if (!Array.isArray(recoveries)) throw odd(answer, "without recoveries");
                return recoveries
                  .filter((one) => isID(one?.recovery) && ["sent", "opened", "waiting", "ready"].includes(one.state))
                  .map((one) => ({
                    recovery: one.recovery, factor: String(one.factor ?? ""), startedBy: String(one.started_by ?? ""),
                    createdAt: moment(one.created_at), readyAt: moment(one.ready_at),
                  }));
              }

              /** Cancels a recovery: the person has lost nothing. */
              async stop(recovery) {
                accepted(await this.line.send(`/recovery/${encodeURIComponent(recovery)}`, { method: "DELETE" }));
              }

              async #list(path) {
                const answer = await this.line.send(path, { method: "GET" });
                const { messages } = accepted(answer);
                if (!Array.isArray(messages)) throw odd(answer, "without messages");
                return messages.filter((one) => isID(one?.message)).map((one) => ({
                  message: one.message, from: one.from === "operator" ? "operator" : "website",
                  title: String(one.title ?? ""), createdAt: moment(one.created_at),
                }));
              }
            }

            """#)
}
