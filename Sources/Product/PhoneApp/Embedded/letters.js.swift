// Written by dev/embed-pages from Assets/letters.js. Do not edit.
extension AppFile {
    static let lettersJS = AppFile(
        "letters.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // Notices and recoveries of all phones, as far as they were fetched.

            import { Mailbox } from "./mailbox.js";

            export class Letters {
              /** The unread notices and open recoveries of each phone, by its id. */
              #found = new Map();

              constructor(app) {
                this.app = app;
              }

              /** Unread notices, each with its phone. */
              get notices() {
                return this.#all("notices");
              }

              get recoveries() {
                return this.#all("recoveries");
              }

              get count() {
                return this.notices.length;
              }

              mailbox(phone) {
                return new Mailbox(phone, this.app.line(phone));
              }

              /** Asks for both lists. The relay says with each answer how many notices are unread. */
              async look(phone) {
                const mailbox = this.mailbox(phone);
                const [notices, recoveries] = await Promise.allSettled([mailbox.unread(), mailbox.recoveries()]);
                const old = this.#found.get(phone.id) ?? { notices: [], recoveries: [] };
                this.#found.set(phone.id, { notices: notices.value ?? old.notices, recoveries: recoveries.value ?? old.recoveries });
                this.app.shell.redraw();
              }

              /** Fetches a notice, which moves it to the archive; null if it was deleted. */
              async read(phone, message) {
                const notice = await this.mailbox(phone).read(message);
                this.#drop(phone, "notices", ({ message: one }) => one === message);
                return notice;
              }

              async stop(phone, recovery) {
                await this.mailbox(phone).stop(recovery);
                this.#drop(phone, "recoveries", ({ recovery: one }) => one === recovery);
              }

              #drop(phone, list, matches) {
                const found = this.#found.get(phone.id);
                if (found) found[list] = found[list].filter((one) => !matches(one));
                this.app.shell.redraw();
              }

              #all(list) {
                return this.app.phones.flatMap((phone) =>
                  (this.#found.get(phone.id)?.[list] ?? []).map((one) => ({ phone, ...one })));
              }
            }

            """#)
}
