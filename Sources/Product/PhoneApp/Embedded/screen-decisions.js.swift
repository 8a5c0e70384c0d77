// Written by dev/embed-pages from Assets/screen-decisions.js. Do not edit.
extension AppFile {
    static let screenDecisionsJS = AppFile(
        "screen-decisions.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The last decisions on this device. The relay keeps all of them; this list is for the person.

            import { visible } from "./context.js";
            import { button, foreign, h, heading } from "./elements.js";
            import { dayOf, t } from "./texts.js";

            const kinds = { approve: "good", deny: "warn", fraud: "bad" };

            export function decisions(app) {
              return {
                node: h(
                  "div", { class: "stack" }, heading(t("decisions")), h("p", { class: "muted" }, t("decisionsText")),
                  app.history.length === 0 ? h("p", {}, t("noDecisions")) : h("ul", { class: "list" }, app.history.map(row)),
                  button(t("back"), () => app.shell.go("settings"), "quiet")),
              };
            }

            function row({ at, displayName, username, service, action, place, word, outcome }) {
              const about = [service, action, place].filter((one) => one !== null && one !== undefined).map(visible).join(" · ");
              return h(
                "li", {},
                h("div", {}, h("strong", {}, foreign(visible(displayName))), h("br"),
                  h("span", { class: "muted small" }, foreign(visible(username)), about ? foreign(` ${about}`) : null, h("br"), dayOf(at))),
                h("span", { class: `badge ${outcome === "failure" && word === "approve" ? "bad" : kinds[word]}` }, t(outcomeText(word, outcome))));
            }

            function outcomeText(word, outcome) {
              if (outcome === "over" || outcome === "late") return "recordLate";
              if (word === "approve" && outcome === "failure") return "recordNotApproved";
              return { approve: "approved", deny: "denied", fraud: "frozen" }[word];
            }

            """#)
}
