// Written by dev/embed-pages from Assets/screen-home.js. Do not edit.
extension AppFile {
    static let screenHomeJS = AppFile(
        "screen-home.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The first screen: the open requests, the recoveries, the accounts, and the way to add one.

            import { CallFailure } from "./calls.js";
            import { mustInstallFirst } from "./capabilities.js";
            import { visible } from "./context.js";
            import { button, fill, foreign, h, heading, note } from "./elements.js";
            import { dayOf, t } from "./texts.js";

            export function home(app) {
              const requests = h("section", { class: "stack tight", "aria-labelledby": "requests-title" });
              const recoveries = h("section", { class: "stack tight", "aria-labelledby": "recoveries-title" });
              const clocks = h("div", { class: "stack tight" });
              const accounts = h("section", { class: "stack tight", "aria-labelledby": "accounts-title" });
              const told = h("p", { role: "status", class: "muted" });

              const look = async () => {
                told.textContent = t("looking");
                app.follow({ again: true });
                await app.requests.wake(app.bound);
                told.textContent = app.requests.open.length === 0 ? t("noRequests") : "";
              };

              const draw = () => {
                const open = app.requests.open;
                requests.hidden = open.length === 0;
                fill(requests, h("h2", { id: "requests-title" }, t("requests")), open.map((entry) => request(app, entry)));
                recoveries.hidden = app.letters.recoveries.length === 0;
                fill(recoveries, h("h2", { id: "recoveries-title" }, t("recoveries")), app.letters.recoveries.map((one) => recovery(app, one)));
                fill(clocks, wrongClock(app));
                clocks.hidden = clocks.children.length === 0;
                accounts.hidden = app.phones.length === 0;
                fill(
                  accounts, h("h2", { id: "accounts-title" }, t("accounts")),
                  h("ul", { class: "list" }, app.phones.map((phone) => account(app, phone))));
                empty.hidden = app.phones.length > 0;
                check.hidden = app.bound.length === 0;
              };

              const empty = welcome(app);
              const check = h("div", { class: "stack tight" }, button(t("check"), look, "quiet"), told);
              const adding = button(t("addAccount"), () => app.shell.go("add"), app.phones.length === 0 ? "primary" : null);
              draw();
              return {
                draw,
                node: h("div", { class: "stack" }, heading(t("home")), requests, recoveries, clocks, empty, accounts, h("div", { class: "stack tight" }, adding, check)),
              };
            }

            /** What is shown before the first account, and after the browser has deleted all of them. */
            function welcome(app) {
              const wasCleared = localStorage.getItem("had-accounts") === "true" && app.phones.length === 0;
              return h(
                "section", { class: "stack", hidden: app.phones.length > 0 },
                wasCleared ? note(t("cleared"), "bad") : null,
                h("p", {}, t("noAccounts")),
                mustInstallFirst() ? h("div", { class: "stack tight" }, note(t("installFirst"), "warn"), button(t("installHow"), () => app.shell.go("install"), "quiet")) : null,
                wasCleared ? null : h("details", {}, h("summary", {}, t("hadAccounts")), h("p", { class: "muted" }, t("cleared"))));
            }

            function request(app, { challenge, question, reason, phone }) {
              if (!question) {
                return note(t("hiddenRequest", { website: visible(phone.displayName ?? phone.website), why: visible(reason) }), "warn");
              }
              const { context } = question;
              const purpose = [context.service, context.action].filter((one) => one !== null).map(visible).join(" · ");
              return h(
                "button", { type: "button", class: "request", "data-challenge": challenge, on: { click: () => app.shell.go("question", challenge) } },
                h("span", { class: "name" }, foreign(visible(context.displayName))),
                h("span", { class: "muted small" }, foreign(visible(context.username)), purpose ? foreign(` ${purpose}`) : null),
                h("span", { class: "go" }, t("open")));
            }

            /** A recovery, with the one answer that a person gives who has lost nothing. */
            function recovery(app, { phone, recovery: id, factor, readyAt }) {
              const told = h("p", { role: "status", class: "small" });
              const stop = async () => {
                try {
                  await app.letters.stop(phone, id);
                  app.shell.announce(t("recoveryStopped"));
                } catch (error) {
                  if (!(error instanceof CallFailure)) throw error;
                  told.textContent = t("failed", { why: visible(error.message) });
                }
              };
              const what = ["totp", "hotp", "push"].includes(factor) ? t(`lost-${factor}`) : visible(factor);
              return h(
                "div", { class: "notice bad stack tight" },
                h("p", {}, t("recoveryText", { website: visible(phone.displayName ?? phone.website), what })),
                readyAt === null ? null : h("p", { class: "small" }, t("recoveryReady", { time: dayOf(readyAt) })),
                button(t("recoveryStop"), stop, "danger"), told);
            }

            /** Says that the clock of this device is wrong, if the relay of a phone has shown it. */
            function wrongClock(app) {
              const offset = app.bound.map((phone) => phone.offset ?? 0).find((one) => Math.abs(one) > 60_000);
              if (offset === undefined) return null;
              return note(t(offset > 0 ? "clockSlow" : "clockFast", { seconds: Math.round(Math.abs(offset) / 1000) }), "warn");
            }

            /** The state of a phone: the name of a text, and the colour of its badge. */
            export function stateOf(phone) {
              if (phone.unboundBy) return ["stateUnbound", "bad"];
              if (phone.isRefused) return ["stateRefused", "bad"];
              return phone.state === "bound" ? ["stateBound", "good"] : ["stateAsked", "warn"];
            }

            function account(app, phone) {
              const [state, kind] = stateOf(phone);
              const open = () => (phone.state === "asked" ? app.shell.go("enrol", { phone }) : app.shell.go("account", phone.id));
              return h(
                "li", {},
                h("button", { type: "button", class: "entry", on: { click: open } },
                  h("span", { class: "name" }, foreign(visible(phone.displayName ?? phone.website))),
                  h("span", { class: "muted small" }, foreign(visible(phone.username ?? phone.at))),
                  h("span", { class: `badge ${kind}` }, t(state))));
            }

            """#)
}
