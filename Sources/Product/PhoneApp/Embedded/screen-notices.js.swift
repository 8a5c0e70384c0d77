// Written by dev/embed-pages from Assets/screen-notices.js. Do not edit.
extension AppFile {
    static let screenNoticesJS = AppFile(
        "screen-notices.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // Notices of websites and operators. They ask nothing: plain text, without links or buttons.

            import { CallFailure } from "./calls.js";
            import { visible } from "./context.js";
            import { button, fill, foreign, h, heading, note } from "./elements.js";
            import { dayOf, t } from "./texts.js";

            export function notices(app) {
              const list = h("div", { class: "stack" });
              const open = h("div", { class: "stack", role: "status" });
              const none = h("p", {}, t("noNotices"));
              const archive = h("div", { class: "stack" });

              const read = async ({ phone, message }) => {
                try {
                  const notice = await app.letters.read(phone, message);
                  fill(open, notice ? article(phone, notice) : note(t("noticeGone"), "warn"));
                } catch (error) {
                  if (!(error instanceof CallFailure)) throw error;
                  fill(open, note(t("failed", { why: visible(error.message) }), "bad"));
                }
              };
              const more = async () => {
                for (const phone of app.bound) {
                  try {
                    const old = await app.letters.mailbox(phone).archived();
                    archive.append(...old.map((one) => entry({ phone, ...one }, read)));
                  } catch (error) {
                    if (!(error instanceof CallFailure)) throw error;
                  }
                }
                if (archive.children.length === 0) fill(archive, h("p", { class: "muted" }, t("noArchive")));
                older.hidden = true;
              };
              const older = button(t("olderNotices"), more, "quiet");
              const draw = () => {
                none.hidden = app.letters.notices.length > 0 || open.children.length > 0;
                fill(list, app.letters.notices.map((one) => entry(one, read)));
                older.hidden = app.bound.length === 0 || archive.children.length > 0;
              };
              draw();
              for (const phone of app.bound) app.letters.look(phone);
              return { draw, node: h("div", { class: "stack" }, heading(t("notices")), none, open, list, older, archive) };
            }

            const author = (phone, from) =>
              t(from === "operator" ? "fromOperator" : "fromWebsite", { website: visible(phone.displayName ?? phone.website) });

            function entry(one, read) {
              return h(
                "button", { type: "button", class: "entry", on: { click: () => read(one) } },
                h("span", { class: "name" }, foreign(visible(one.title))),
                h("span", { class: "muted small" }, author(one.phone, one.from)),
                one.createdAt === null ? null : h("span", { class: "muted small" }, dayOf(one.createdAt)));
            }

            function article(phone, { from, title, text, createdAt }) {
              return h(
                "article", { class: "message" }, h("h2", {}, foreign(title)),
                h("p", { class: "muted small" }, `${author(phone, from)}, ${dayOf(createdAt)}`),
                h("p", { class: "text", dir: "auto" }, text));
            }

            """#)
}
