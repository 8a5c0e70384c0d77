// Written by dev/embed-pages from Assets/screen-add.js. Do not edit.
extension AppFile {
    static let screenAddJS = AppFile(
        "screen-add.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The way to add an account or a code: by the camera, or by a link.

            import { button, field, form, h, heading } from "./elements.js";
            import { receive } from "./receive.js";
            import { scan } from "./scanner.js";
            import { t } from "./texts.js";

            export function add(app) {
              const leaving = new AbortController();
              const told = h("p", { role: "status", class: "muted" });
              const video = h("video", { class: "camera", playsinline: true, muted: true, "aria-label": t("cameraView"), hidden: true });
              const link = field(t("link"), h("textarea", { autocomplete: "off", autocapitalize: "off", spellcheck: "false", rows: "3", dir: "ltr" }), t("linkHint"));

              const start = async () => {
                told.textContent = t("cameraStarts");
                try {
                  const text = await scan(video, leaving.signal, () => { told.textContent = t("cameraLooks"); });
                  if (text !== null) await receive(app, text.trim());
                } catch (error) {
                  told.textContent = t(error.name === "NotAllowedError" ? "cameraDenied" : "cameraNone");
                  video.hidden = true;
                }
              };
              const take = () => {
                const text = link.input.value.trim();
                if (text === "") return link.complain(t("linkEmpty"));
                return receive(app, text);
              };
              return {
                leave: () => leaving.abort(),
                node: h(
                  "div", { class: "stack" }, heading(t("addAccount")), h("p", {}, t("addText")),
                  button(t("scan"), start, "primary"), video, told,
                  form(take, link.node, h("button", {}, t("goOn"))),
                  button(t("cancel"), () => app.shell.go("home"), "quiet")),
              };
            }

            """#)
}
