// Written by dev/embed-pages from Assets/screen-refused.js. Do not edit.
extension AppFile {
    static let screenRefusedJS = AppFile(
        "screen-refused.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // A link that this app does not follow, with the reason.

            import { visible } from "./context.js";
            import { button, h, heading, note } from "./elements.js";
            import { t } from "./texts.js";

            export function refused(app, { reason, values }) {
              const shown = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, visible(value)]));
              return {
                node: h(
                  "div", { class: "stack" }, heading(t("linkRefused")), note(t(reason, shown), "bad", "alert"),
                  button(t("done"), () => app.shell.go("home"), "primary")),
              };
            }

            """#)
}
