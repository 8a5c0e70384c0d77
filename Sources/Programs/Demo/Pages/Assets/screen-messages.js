// Text messages and mails, newest first. This phone receives all of them, whatever the number or address.

import { h, heading } from "./elements.js";
import { visible, visibleLines } from "./context.js";
import { t, timeOf } from "./texts.js";

export function messages(app) {
  const list = h("div", { class: "stack", id: "messages" });
  const none = h("p", { class: "muted" }, t("noMessages"));
  const draw = () => {
    none.hidden = app.messages.length > 0;
    list.replaceChildren(...[...app.messages].reverse().map(article));
    app.readMessages();
  };
  draw();
  return { draw, node: h("div", { class: "stack" }, heading(t("messages")), none, list) };
}

function article({ kind, at, from, to, subject, text }) {
  return h(
    "article", { class: `message ${kind}`, "data-kind": kind },
    h(
      "header", { class: "row apart" }, h("h2", {}, subject ? visible(subject) : t(kind)),
      h("time", { datetime: at, class: "muted small" }, timeOf(at))),
    h("p", { class: "muted small" }, `${t(kind)}, ${t("from", { from: visible(from) })}${to ? `, ${t("to", { to: visible(to) })}` : ""}`),
    h("p", { class: "text" }, visibleLines(text)));
}
