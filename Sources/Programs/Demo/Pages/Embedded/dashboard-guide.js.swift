// Written by dev/embed-pages from Assets/dashboard-guide.js. Do not edit.
extension PageFile {
    static let dashboardGuideJS = PageFile(
        "dashboard-guide.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The first steps of a visitor. The messages show which steps are done: these are ticked, and the next one is marked.

            import { text } from "./dashboard-texts.js";

            const steps = {
              signUp: ({ to, body }) => to === "website" && Boolean(body.activation),
              bind: ({ to, body }) => to === "phone" && Boolean(body.certificate),
              // Only logins count. A payment names its action, and a new factor is approved without a POST /login.
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
                for (const [step, isDoneBy] of Object.entries(steps)) if (isDoneBy(message)) done.add(step);
              }
              showGuide();
            }

            export function showGuide() {
              const next = Object.keys(steps).find((step) => !done.has(step));
              for (const item of document.querySelectorAll("[data-step]")) {
                const { step } = item.dataset;
                item.classList.toggle("is-done", done.has(step));
                if (step === next) item.setAttribute("aria-current", "step");
                else item.removeAttribute("aria-current");
                // For screen readers; others see a tick.
                const state = item.querySelector(".unseen") ?? item.appendChild(Object.assign(document.createElement("span"), { className: "unseen" }));
                state.textContent = done.has(step) ? ` (${text("done")})` : "";
              }
              document.querySelector(".switches").classList.toggle("is-next", next === undefined);
            }

            """#)
}
