// Written by dev/embed-pages from Assets/report-view.js. Do not edit.
extension AppFile {
    static let reportViewJS = AppFile(
        "report-view.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The report of a login that was somebody else's, after it has ended: all that is known of it, what
            // the report does, and the answer, which counts only after everything was on the screen.

            import { CallFailure } from "./calls.js";
            import { visible } from "./context.js";
            import { button, facts, fill, h, heading, note } from "./elements.js";
            import { failureText, outcomeBadge } from "./own-parts.js";
            import { Reading, askerOf, contextRows } from "./shown-context.js";
            import { dayOf, t } from "./texts.js";

            /**
             * {node, start, leave} for a login. `context` is what a phone signs; a page without a phone makes
             * one of what the relay says. `send` returns whether the report counts, `back` leaves the view, and
             * `reported` is called after a report that counts.
             */
            export function reportView({ login, context, send, back, reported = () => {} }) {
              const website = visible(context.displayName);
              const node = h("div", { class: "stack question" });
              const told = h("p", { role: "status" });
              let isSending = false;

              const end = (title, kind, words) => {
                const head = heading(title);
                reading.stop();
                fill(node, head, note(words, kind, "status"), button(t("done"), back, "primary"));
                head.focus();
              };
              const answer = async () => {
                // A login that was not shown whole is not reported.
                if (isSending || !reading.isWhole) return undefined;
                isSending = true;
                enable();
                told.className = "muted";
                told.textContent = t("sending");
                try {
                  if (!(await send())) return end(t("reportLate"), "warn", t("reportLateText"));
                  await reported();
                  return end(t("frozen"), "bad", t("reportedText", { website }));
                } catch (error) {
                  if (!(error instanceof CallFailure)) throw error;
                  told.className = "notice bad";
                  told.textContent = failureText(error);
                  told.scrollIntoView({ block: "nearest" });
                }
                isSending = false;
                return enable();
              };

              const head = heading(t("reportTitle"));
              const asker = askerOf(context);
              const list = facts([...contextRows(context, dayOf), [t("outcome"), outcomeBadge(login)]]);
              const effect = note(t("reportText", { website }), "bad");
              const reporting = h("button", { type: "button", class: "danger primary", id: "report", on: { click: answer } }, t("fraudYes"));
              const enable = () => { reporting.disabled = !reading.isWhole || isSending; };
              const reading = new Reading([head, asker, ...list.children, effect], enable);
              enable();
              fill(
                node, head, asker, list, effect, reading.rest, told,
                h("div", { class: "answers" }, reporting, button(t("reportNo"), back)));
              return {
                node,
                start: (front) => {
                  front.parentElement.scrollTop = 0;
                  head.focus();
                  reading.start(front);
                },
                leave: () => reading.stop(),
              };
            }

            /** What a page without a phone shows of a login: the relay's words, which nobody signs. */
            export const contextOf = (account, login) => ({
              ...login, website: account.website, displayName: account.displayName, username: account.username,
              details: [], device: null,
            });

            """#)
}
