// Written by dev/embed-pages from Assets/screen-install.js. Do not edit.
extension AppFile {
    static let screenInstallJS = AppFile(
        "screen-install.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The screen that explains how to install the app on iOS before the first account is added. The
            // installed app has its own storage.

            import { button, h, heading, note } from "./elements.js";
            import { t } from "./texts.js";

            export function install(app, { link = null } = {}) {
              const told = h("p", { role: "status", class: "muted" });
              const copy = async () => {
                try {
                  await navigator.clipboard.writeText(link);
                  told.textContent = t("copied");
                } catch {
                  told.textContent = t("notCopied");
                }
              };
              return {
                node: h(
                  "div", { class: "stack" }, heading(t("installTitle")), note(t("installFirst"), "warn"),
                  h("ol", { class: "steps" }, ["installStep1", "installStep2", "installStep3", "installStep4"].map((name) => h("li", {}, t(name)))),
                  link ? h("div", { class: "stack tight" }, button(t("copyLink"), copy, "primary"), told) : null,
                  button(t("back"), () => app.shell.go("home"), "quiet")),
              };
            }

            """#)
}
