// The language, and for each website the name of this phone and its removal.

import { CallFailure } from "./calls.js";
import { button, confirm, field, h, heading } from "./elements.js";
import { visible } from "./context.js";
import { language, languages, setLanguage, t } from "./texts.js";

export function settings(app) {
  const choice = h(
    "select", { on: { change: (event) => { setLanguage(event.target.value); app.speak(); } } },
    languages.map(([tag, name]) => h("option", { value: tag, lang: tag, selected: tag === language() }, name)));
  return {
    node: h(
      "div", { class: "stack loose" }, heading(t("settings")), field(t("language"), choice).node,
      app.phones.filter(({ state }) => state === "bound").map((phone) => account(app, phone)),
      h("p", { class: "muted small" }, t("about"))),
  };
}

function account(app, phone) {
  const website = visible(phone.displayName ?? phone.website);
  const told = h("p", { role: "status", class: "muted" });
  const attempt = async (work) => {
    told.textContent = "";
    try {
      await work();
    } catch (error) {
      if (!(error instanceof CallFailure)) throw error;
      told.textContent = error.status === 401 ? t("refusedState") : t("failed", { why: visible(error.message) });
      if (error.status === 401) app.refuse(phone);
    }
  };
  const name = field(t("rename", { website }), h("input", { maxlength: "64", required: true, autocomplete: "off", value: phone.name ?? "" }));
  const rename = () => attempt(async () => {
    await app.save(await app.responder(phone).rename(name.input.value.trim()));
    told.textContent = t("renamed");
  });
  const unbind = async () => {
    const sure = { title: t("unbindTitle"), text: t("unbindText", { website }), yes: t("unbind"), no: t("cancel") };
    if (!(await confirm(sure))) return;
    await attempt(async () => {
      await app.responder(phone).unbind();
      await leave();
    });
  };
  const leave = async () => {
    await app.forget(phone);
    app.go("settings");
  };
  return h(
    "section", { class: "stack", "aria-label": website }, h("h2", {}, website),
    phone.isRefused ? h("p", { class: "notice bad" }, t("refusedState")) : null,
    h(
      "form", { on: { submit: (event) => { event.preventDefault(); rename(); } } }, name.node,
      h("div", { class: "row" }, h("button", {}, t("save")), button(t(phone.isRefused ? "removeAccount" : "unbind"), phone.isRefused ? leave : unbind, "danger"))),
    told);
}
