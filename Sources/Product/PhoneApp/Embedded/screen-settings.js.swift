// Written by dev/embed-pages from Assets/screen-settings.js. Do not edit.
extension AppFile {
    static let screenSettingsJS = AppFile(
        "screen-settings.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The language, the accounts, and the state of this app on this device.

            import { visible } from "./context.js";
            import { button, facts, field, fill, foreign, h, heading, note } from "./elements.js";
            import { isInstalled } from "./capabilities.js";
            import { stateOf } from "./screen-home.js";
            import { language, languages, t } from "./texts.js";
            import { fingerprint } from "./version.js";

            export function settings(app) {
              const choice = h(
                "select", { on: { change: (event) => app.setLanguage(event.target.value) } },
                languages.map(([tag, name]) => h("option", { value: tag, lang: tag, selected: tag === language() }, name)));
              const list = h("ul", { class: "list" });
              const notifications = h("div", { class: "stack tight" });
              const storage = h("div", {});
              const print = h("span", { class: "code", id: "fingerprint" });

              const allow = async () => {
                await app.pushes.allow();
                draw();
              };
              const draw = () => {
                fill(list, app.phones.filter(({ state }) => state === "bound").map((phone) => {
                  const [state, kind] = stateOf(phone);
                  return h("li", {}, h(
                    "button", { type: "button", class: "entry", on: { click: () => app.shell.go("account", phone.id) } },
                    h("span", { class: "name" }, foreign(visible(phone.displayName ?? phone.website))),
                    h("span", { class: "muted small" }, foreign(visible(phone.username ?? phone.at))),
                    h("span", { class: `badge ${kind}` }, t(state))));
                }));
                list.hidden = list.children.length === 0;
                const permission = app.pushes.permission;
                fill(
                  notifications, note(t(`notify-${permission}`), { granted: "good", denied: "warn" }[permission] ?? ""),
                  permission === "default" ? button(t("notifyAllow"), allow) : null);
              };
              draw();
              tellStorage(storage);
              fingerprint(app.config).then((words) => { print.textContent = words; });
              return {
                draw,
                node: h(
                  "div", { class: "stack loose" }, heading(t("settings")),
                  h("section", { class: "stack tight" }, h("h2", {}, t("accounts")), list,
                    button(t("decisions"), () => app.shell.go("decisions"), "quiet")),
                  h("section", { class: "stack tight" }, h("h2", {}, t("notifications")), notifications),
                  field(t("language"), choice).node,
                  h("section", { class: "stack tight" }, h("h2", {}, t("thisApp")), storage,
                    facts([[t("version"), app.config.version], [t("fingerprint"), print]]),
                    h("p", { class: "hint" }, t("fingerprintHint")),
                    isInstalled() ? null : h("p", { class: "hint" }, t("installHint"))),
                  h("p", { class: "muted small" }, t("aboutKeys"))),
              };
            }

            /** Says whether the browser may delete the keys when it needs room. */
            async function tellStorage(node) {
              const isPersistent = await navigator.storage?.persisted?.().catch(() => false);
              fill(node, note(t(isPersistent ? "storageKept" : "storageMayGo"), isPersistent ? "good" : "warn"));
            }

            """#)
}
