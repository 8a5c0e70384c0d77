// Written by dev/embed-pages from Assets/screen-codes.js. Do not edit.
extension PageFile {
    static let screenCodesJS = PageFile(
        "screen-codes.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // Time-based codes (TOTP), each with its remaining seconds.

            import { button, confirm, h, heading } from "./elements.js";
            import { visible } from "./context.js";
            import { codeAt } from "./totp.js";
            import { t } from "./texts.js";

            export function codes(app) {
              const list = h("ul", { class: "list" });
              const none = h("p", { class: "muted" }, t("noCodes"));
              let rows = [];

              const draw = () => {
                none.hidden = app.codes.length > 0;
                list.hidden = app.codes.length === 0;
                rows = app.codes.map((entry) => row(app, entry));
                list.replaceChildren(...rows.map(({ node }) => node));
                tick();
              };
              const tick = () => {
                for (const one of rows) one.show();
              };
              draw();
              const ticking = setInterval(tick, 1000);
              return {
                draw, leave: () => clearInterval(ticking),
                node: h("div", { class: "stack" }, heading(t("codes")), none, list),
              };
            }

            function row(app, entry) {
              const names = { issuer: visible(entry.issuer), account: visible(entry.account) };
              const code = h("output", { class: "otp", "aria-live": "off", "aria-label": t("codeFor", names) });
              const time = h("span", { class: "muted small" });
              const bar = h("progress", { max: String(entry.period), "aria-hidden": "true" });
              const remove = async () => {
                const isSure = await confirm({
                  title: t("removeCode", names), text: t("removeCodeText"), yes: t("remove"), no: t("cancel"),
                });
                if (isSure) await app.removeCode(entry);
              };
              const show = async () => {
                const now = await codeAt(Date.now(), entry);
                const half = Math.ceil(now.code.length / 2);
                const words = `${now.code.slice(0, half)} ${now.code.slice(half)}`;
                if (code.textContent !== words) code.textContent = words;
                time.textContent = t("secondsLeft", { seconds: now.left });
                bar.value = now.left;
              };
              return {
                show,
                node: h(
                  "li", { class: "otp-row" },
                  h("div", {}, h("strong", {}, names.issuer), h("br"), h("span", { class: "muted small" }, names.account)),
                  h("div", { class: "now" }, code, h("div", { class: "row" }, bar, time)),
                  h("button", { type: "button", class: "quiet", "aria-label": t("removeCode", names), on: { click: remove } }, t("remove"))),
              };
            }

            """#)
}
