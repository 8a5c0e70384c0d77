// Written by dev/embed-pages from Assets/screen-version.js. Do not edit.
extension AppFile {
    static let screenVersionJS = AppFile(
        "screen-version.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // A version of the app that the person may accept. Until then the accepted version stays.

            import { button, facts, fill, h, heading, note } from "./elements.js";
            import { t } from "./texts.js";
            import { fingerprint } from "./version.js";

            export function version(app) {
              const node = h("div", { class: "stack" });
              const back = () => app.shell.go("home");
              const { offer } = app.updates;
              if (!offer) {
                fill(node, heading(t("updateTitle")), note(t("updateNone"), "good"), button(t("back"), back, "primary"));
                return { node };
              }
              const told = h("p", { role: "alert", class: "error" });
              const prints = [h("span", { class: "code" }), h("span", { class: "code", id: "new-fingerprint" })];
              [offer.old, offer.config].forEach((config, at) => fingerprint(config).then((words) => { prints[at].textContent = words; }));
              const accept = async () => {
                told.textContent = "";
                taking.disabled = true;
                try {
                  await app.updates.accept();
                } catch (error) {
                  told.textContent = t("updateFailed", { why: error.message });
                  await app.updates.look();
                  taking.disabled = false;
                }
              };
              const taking = button(t("updateTake", { version: offer.config.version }), accept, "primary");
              const relays = offer.config.relays.filter((one) => !offer.old.relays.includes(one));
              fill(
                node, heading(t("updateTitle")), h("p", {}, t("updateText")),
                facts([
                  [t("versionNow"), offer.old.version], [t("fingerprint"), prints[0]],
                  [t("versionNew"), offer.config.version], [t("fingerprint"), prints[1]],
                  [t("filesChanged"), app.updates.changed.map((path) => path.replace("/phone/", "")).join(", ")],
                  [t("relaysNew"), relays.join(", ")],
                ]),
                told, taking, button(t("notNow"), back, "quiet"));
              return { node };
            }

            """#)
}
