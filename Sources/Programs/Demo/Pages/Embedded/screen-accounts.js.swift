// Written by dev/embed-pages from Assets/screen-accounts.js. Do not edit.
extension PageFile {
    static let screenAccountsJS = PageFile(
        "screen-accounts.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The first screen: the open requests, the accounts, and the way to add one.

            import { button, field, h, heading } from "./elements.js";
            import { visible } from "./context.js";
            import { Malformed, readActivation } from "./activation.js";
            import { MalformedOTP, holdOTP, readOTPAuth } from "./totp.js";
            import { t } from "./texts.js";

            export function accounts(app) {
              const told = h("p", { role: "status", class: "muted" });
              const requests = h("section", { "aria-labelledby": "requests-title", class: "stack" });
              const list = h("ul", { class: "list" });
              const none = h("p", { class: "muted" }, t("noAccounts"));

              const address = field(t("address"), h("textarea", { autocomplete: "off", spellcheck: "false", rows: "3" }));
              const take = async (uri, complain) => {
                try {
                  await receive(app, uri.trim());
                } catch (error) {
                  complain(error.message);
                }
              };
              const paste = h(
                "form", { on: { submit: (event) => { event.preventDefault(); take(address.input.value, address.complain); } } },
                address.node, h("button", {}, t("add")));

              const scan = async () => {
                told.textContent = "";
                const response = await fetch("/scan", { method: "POST" }).catch(() => null);
                if (!response?.ok) {
                  told.textContent = t(response?.status === 404 ? "nothingToScan" : "gone");
                  return;
                }
                take((await response.json()).uri, (words) => { told.textContent = words; });
              };
              const look = async () => {
                told.textContent = "";
                await app.wake();
                if (app.requests.open.length === 0) told.textContent = t("looked");
              };

              const draw = () => {
                const open = app.requests.open;
                requests.hidden = open.length === 0;
                requests.replaceChildren(
                  h("h2", { id: "requests-title" }, t("requests")),
                  ...open.map((entry) => (entry.question
                    ? button(requestTitle(entry.question.context), () => app.go("question", entry.challenge), "primary request")
                    : h("p", { class: "notice warn" }, t("hidden", { why: visible(entry.reason) })))));
                none.hidden = app.phones.length > 0;
                list.hidden = app.phones.length === 0;
                list.replaceChildren(...app.phones.map((phone) => account(app, phone)));
              };
              draw();
              return {
                draw,
                node: h(
                  "div", { class: "stack" }, heading(t("accounts")), requests, none, list,
                  h("div", { class: "stack tight" }, button(t("scan"), scan, "primary"), button(t("look"), look)), told,
                  h("details", { class: "stack" }, h("summary", {}, t("paste")), paste)),
              };
            }

            const requestTitle = ({ displayName, username }) => `${visible(displayName)}: ${visible(username)} – ${t("open")}`;

            function account(app, phone) {
              const [state, kind] = phone.isRefused ? ["refusedState", "bad"] : phone.state === "bound" ? ["bound", "good"] : ["waiting", "warn"];
              const who = phone.username ? `${visible(phone.displayName)}, ${visible(phone.username)}` : visible(phone.website);
              return h(
                "li", {},
                h("div", {}, h("strong", {}, who), h("br"), h("span", { class: "muted small" }, t("at", { relay: phone.relay }))),
                h("span", { class: `badge ${kind}` }, t(state)),
                phone.state === "asked" ? button(t("goOn"), () => app.go("enrol", { phone })) : null);
            }

            /** Takes a scanned or pasted URI, which adds a phone or a code; throws an error with a message for the user. */
            async function receive(app, uri) {
              try {
                if (uri.startsWith("otpauth:")) {
                  const code = await holdOTP(readOTPAuth(uri));
                  await app.addCode({ ...code, id: crypto.randomUUID() });
                  app.go("codes");
                  return;
                }
                const activation = readActivation(uri);
                if (activation.relay !== app.about.origin) throw new Error(t("otherRelay", { relay: visible(activation.relay) }));
                app.go("enrol", { activation });
              } catch (error) {
                if (!(error instanceof Malformed) && !(error instanceof MalformedOTP)) throw error;
                throw new Error(t("badAddress", { why: visible(error.message) }));
              }
            }

            """#)
}
