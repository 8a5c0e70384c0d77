// Written by dev/embed-pages from Assets/own-parts.js. Do not edit.
extension AppFile {
    static let ownPartsJS = AppFile(
        "own-parts.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The parts of the own account on the screen: phones, code factors and logins.

            import { CallFailure } from "./calls.js";
            import { visible } from "./context.js";
            import { field, form, foreign, h } from "./elements.js";
            import { isRevocationCode, revoke } from "./own-account.js";
            import { dayOf, t, word } from "./texts.js";

            /** The words for a value of the relay, or the value itself if this app does not know it. */
            const named = (kind, value) => word(kind, value) ?? visible(value);

            const badge = (words, kind = "") => h("span", { class: `badge ${kind}`.trim() }, words);
            const joined = (...parts) => parts.filter((part) => part !== null && part !== "").flatMap((part, at) => (at === 0 ? [part] : [" · ", part]));
            const small = (...parts) => (joined(...parts).length === 0 ? null : h("p", { class: "muted small" }, joined(...parts)));
            const shown = (value) => (value === null ? null : foreign(visible(value)));
            const row = (...parts) => h("li", {}, h("div", { class: "stack own" }, ...parts));

            /** The colour of a state; a state that this app does not know has none. */
            const colours = { active: "good", waiting: "warn", suspended: "bad", locked: "bad", frozen: "bad", disabled: "bad", expired: "bad", undeliverable: "bad" };
            const stateBadge = (state) => (state === null ? null : badge(named("own", state), colours[state]));

            const deviceName = ({ name, platform }) => (name === null ? named("platform", platform ?? "other") : foreign(visible(name)));

            export function devicesPart({ devices }) {
              return h(
                "section", { class: "stack tight", id: "own-devices" }, h("h2", {}, t("ownDevices")),
                devices.length === 0 ? h("p", {}, t("ownNoDevices")) : h("ul", { class: "list" }, devices.map((one) => row(
                  h("p", { class: "row" }, h("strong", {}, deviceName(one)), one.isThis ? badge(t("ownThis")) : null, stateBadge(one.state)),
                  small(
                    one.name === null || one.platform === null ? null : named("platform", one.platform),
                    one.createdAt === null ? null : t("ownAdded", { time: dayOf(one.createdAt) }),
                    one.seenAt === null ? null : t("ownSeen", { time: dayOf(one.seenAt) }))))));
            }

            export function factorsPart({ factors }) {
              return h(
                "section", { class: "stack tight", id: "own-factors" }, h("h2", {}, t("ownFactors")),
                factors.length === 0 ? h("p", {}, t("ownNoFactors")) : h("ul", { class: "list" }, factors.map((one) => row(
                  h("p", { class: "row" }, h("strong", {}, named("kind", one.kind)), stateBadge(one.state)),
                  small(
                    shown(one.address), one.left === null ? null : t("ownLeft", { count: one.left }),
                    one.createdAt === null ? null : t("ownAdded", { time: dayOf(one.createdAt) }))))));
            }

            /** The form that removes a lost phone. `line` reaches the relay, and `removed` is called afterwards. */
            export function lostPart(line, removed) {
              const told = h("p", { role: "status" });
              const code = field(
                t("revocationCode"),
                h("input", { autocomplete: "off", autocapitalize: "off", spellcheck: "false", dir: "ltr", maxlength: "64" }), t("revocationCodeHint"));
              const tell = (words, kind) => {
                told.className = `notice ${kind}`;
                told.textContent = words;
              };
              const remove = async () => {
                const typed = code.input.value.trim();
                if (!isRevocationCode(typed)) return code.complain(t("revocationCodeForm"));
                try {
                  await revoke(line, typed);
                  code.input.value = "";
                  tell(t("revoked"), "good");
                  return removed();
                } catch (error) {
                  if (!(error instanceof CallFailure)) throw error;
                  return tell(failureText(error), "bad");
                }
              };
              return h(
                "section", { class: "stack tight", id: "own-lost" }, h("h2", {}, t("ownLost")), h("p", { class: "muted" }, t("ownLostText")),
                form(remove, code.node, h("button", { class: "danger" }, t("ownLostDo")), told));
            }

            /**
             * The logins, the newest first. `report(login)` opens the screen of a report; `device` is the
             * phone whose approvals a filter shows, or null if there is no filter.
             */
            export function loginsPart(account, { device, report }) {
              const list = h("ul", { class: "list" });
              const none = h("p", { role: "status" });
              const filter = h(
                "select", { on: { change: () => draw() } }, h("option", { value: "all" }, t("ownAll")), h("option", { value: "mine" }, t("ownMine")));
              const draw = () => {
                const logins = filter.value === "mine"
                  ? account.logins.filter((one) => one.outcome === "success" && one.device === device) : account.logins;
                list.replaceChildren(...logins.map((one) => loginRow(account, one, report)));
                list.hidden = logins.length === 0;
                none.textContent = logins.length === 0 ? t("ownNoLogins") : "";
              };
              draw();
              return h(
                "section", { class: "stack tight", id: "own-logins" }, h("h2", {}, t("ownLogins")), h("p", { class: "muted" }, t("ownLoginsText")),
                device === null || account.logins.length === 0 ? null : field(t("ownFilter"), filter).node, none, list);
            }

            const outcomes = { success: "good", failure: "bad", wait: "warn" };

            export const outcomeBadge = ({ outcome }) => badge(named("outcome", outcome), outcomes[outcome]);

            /** By which phone or factor a login was decided; null if the relay does not say. */
            export function decidedBy({ devices }, { factor, device }) {
              const known = devices.find((one) => one.device === device);
              if (known) return deviceName(known);
              if (device !== null) return t("ownOther");
              return factor === null ? null : named("kind", factor);
            }

            function loginRow(account, login, report) {
              const time = dayOf(login.createdAt);
              const by = decidedBy(account, login);
              const doubt = login.question || login.isReportable
                ? h("button", { type: "button", class: "danger", "aria-label": t("ownReportOf", { time }), on: { click: () => report(login) } }, t("fraud"))
                : null;
              return row(
                h("p", { class: "row apart" }, h("strong", {}, time), outcomeBadge(login)),
                small(foreign(visible(account.displayName)), shown(login.service), shown(login.action)),
                small(shown(login.place), shown(login.ip), shown(login.userAgent)),
                small(by === null ? null : h("span", {}, t("ownBy"), " ", by), login.reason === null ? null : named("reason", login.reason)), doubt);
            }

            export const failureText = (error) =>
              (error.status === 429 ? t("slow", { seconds: error.retryAfter ?? 60 }) : t("failed", { why: visible(error.message) }));

            """#)
}
