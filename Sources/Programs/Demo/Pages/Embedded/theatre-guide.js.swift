// Written by dev/embed-pages from Assets/theatre-guide.js. Do not edit.
extension PageFile {
    static let theatreGuideJS = PageFile(
        "theatre-guide.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // How far a visitor has come, told by what has been said: the step that is next is marked, and what is done is ticked.

            import { word } from "./theatre-words.js";

            const signs = {
              signUp: ({ to, body }) => to === "website" && Boolean(body.activation),
              bind: ({ to, body }) => to === "phone" && Boolean(body.certificate),
              // A payment is asked in the same way, but names its action; and a yes to something that is added is none to a login.
              logIn: ({ from, to, head, body }) => {
                if (from === "website" && head === "POST /login") isAsking = !body.action;
                if (to !== "website" || !body.challenge) return false;
                if (isAsking && ["verified", "unverified"].includes(body.login)) {
                  isAsking = false;
                  logins.add(body.challenge);
                }
                return body.login === "success" && logins.has(body.challenge);
              },
            };

            let isAsking = false;
            const logins = new Set();
            const done = new Set();

            export function guide(messages) {
              for (const message of messages) {
                if (message.note) continue;
                for (const [step, isSign] of Object.entries(signs)) if (isSign(message)) done.add(step);
              }
              showGuide();
            }

            export function showGuide() {
              const next = Object.keys(signs).find((step) => !done.has(step));
              for (const item of document.querySelectorAll("[data-step]")) {
                const { step } = item.dataset;
                item.classList.toggle("is-done", done.has(step));
                if (step === next) item.setAttribute("aria-current", "step");
                else item.removeAttribute("aria-current");
                // Read out; what is seen is a tick.
                const told = item.querySelector(".unseen") ?? item.appendChild(Object.assign(document.createElement("span"), { className: "unseen" }));
                told.textContent = done.has(step) ? ` (${word("done")})` : "";
              }
              document.querySelector(".switches").classList.toggle("is-next", next === undefined);
            }

            """#)
}
