// The screen of an account: the name, codes, PIN and clock of its phone, and the removal.

import { CallFailure } from "./calls.js";
import { visible } from "./context.js";
import { isUnbound } from "./device.js";
import { button, confirm, digits, facts, field, fill, foreign, form, h, heading, note } from "./elements.js";
import { holdOTP } from "./otp.js";
import { isPIN, pinKey } from "./pin.js";
import { locate } from "./place.js";
import { stateOf } from "./screen-home.js";
import { ownSection } from "./screen-own.js";
import { t } from "./texts.js";

export function account(app, id) {
  const phone = () => app.phones.find((one) => one.id === id);
  const back = () => app.shell.go("settings");
  if (!phone()) return { node: h("div", { class: "stack" }, heading(t("over")), button(t("back"), back)) };
  const website = visible(phone().displayName ?? phone().website);
  const told = h("p", { role: "status" });
  const tell = (words, kind = "") => {
    told.className = words ? `notice ${kind}`.trim() : "";
    told.textContent = words;
  };
  const attempt = async (work) => {
    tell("");
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof CallFailure)) throw error;
      if (isUnbound(error)) await app.refuse(phone());
      tell(isUnbound(error) ? t("refusedText") : t("failed", { why: visible(error.message) }), "bad");
      return undefined;
    }
  };

  const state = h("div", { class: "stack tight" });
  const draw = () => {
    if (!phone()) return;
    const [name, kind] = stateOf(phone());
    fill(
      state, h("p", {}, h("span", { class: `badge ${kind}` }, t(name))),
      phone().unboundBy ? note(t(`unboundBy-${phone().unboundBy}`, { website }), "bad")
        : phone().isRefused ? note(t("refusedText"), "bad") : null);
  };
  draw();
  const isUsable = !phone().isRefused && !phone().unboundBy;
  return {
    draw,
    node: h(
      "div", { class: "stack loose" },
      h("div", { class: "stack tight" }, heading(website), state),
      facts([
        [t("account"), phone().username ? foreign(visible(phone().username)) : null], [t("website"), foreign(phone().website)],
        [t("relay"), foreign(phone().relay)], [t("ownerCheckState"), t(phone().passkey ? "ownerChecked" : "ownerUnchecked")],
      ]),
      told,
      isUsable ? ownSection(app, phone) : null,
      isUsable ? naming(app, phone, attempt, tell) : null,
      isUsable ? code(app, phone, attempt, tell) : null,
      isUsable ? h("section", { class: "stack tight" }, h("h2", {}, t("pinTitle")), h("p", { class: "muted" }, t("pinAbout")),
        button(t("pinManage"), () => app.shell.go("pin", id))) : null,
      isUsable && phone().sharesPlace !== undefined ? place(app, phone, website) : null,
      isUsable ? clock(app, phone, attempt, tell) : null,
      removal(app, phone, attempt, back, website),
      button(t("back"), back, "quiet")),
  };
}

function naming(app, phone, attempt, tell) {
  const name = field(t("phoneName"), h("input", { maxlength: "64", autocomplete: "off", value: phone().name ?? "" }), t("phoneNameHint"));
  const rename = () => attempt(async () => {
    const words = name.input.value.trim();
    await app.responder(phone()).rename(words);
    await app.change(phone(), { name: words });
    tell(t("saved"), "good");
  });
  return form(rename, name.node, h("button", {}, t("save")));
}

/** The secret of this phone's codes, which the relay seals to its second key. */
function code(app, phone, attempt, tell) {
  const pin = field(t("pin"), digits({ type: "password", maxlength: "12" }), t("pinForCodes"));
  pin.node.hidden = true;
  const fetch = async () => {
    if (!pin.node.hidden && !isPIN(pin.input.value)) return pin.complain(t("pinForm"));
    if (!pin.node.hidden && !phone().pinSecret) return tell(t("pinMissing"), "warn");
    const key = pin.node.hidden ? null : await pinKey(pin.input.value, phone().pinSecret, "pin");
    pin.input.value = "";
    try {
      const { factor, ...otp } = await app.responder(phone()).fetchCodes(key);
      const { displayName, website, username, relay } = phone();
      const names = { issuer: displayName ?? website, account: username ?? relay };
      await app.saveCode({ ...(await holdOTP({ ...otp, ...names })), id: `phone ${phone().id}`, phone: phone().id, factor });
      await app.change(phone(), { codesAt: Date.now() });
      return app.shell.go("codes");
    } catch (error) {
      if (error.code === "pin_required" || error.code === "pin_wrong") {
        pin.node.hidden = false;
        return pin.complain(error.code === "pin_wrong" ? t("pinWrong", { tries: error.body.tries_left ?? "?" }) : t("pinForm"));
      }
      if (error.status === 403) return tell(t("codesForbidden"), "warn");
      if (error.status === 409) return tell(t("codesTaken"), "warn");
      throw error;
    }
  };
  return h(
    "section", { class: "stack tight" }, h("h2", {}, t("codes")), h("p", { class: "muted" }, t("codesAbout")),
    form(() => attempt(fetch), pin.node, h("button", {}, t("codesGet"))));
}

/** The person's choice whether the website gets the place of this phone. */
function place(app, phone, website) {
  const told = h("p", { role: "status", class: "muted" });
  const change = async () => {
    await app.change(phone(), { sharesPlace: !phone().sharesPlace });
    draw();
    told.textContent = phone().sharesPlace && (await locate()) === null ? t("placeUnknown") : "";
  };
  const state = h("p", {});
  const changing = button("", change);
  const draw = () => {
    state.textContent = t(phone().sharesPlace ? "placeOn" : "placeOff");
    changing.textContent = t(phone().sharesPlace ? "placeNo" : "placeYes");
  };
  draw();
  return h(
    "section", { class: "stack tight" }, h("h2", {}, t("placeHere")), h("p", { class: "muted" }, t("placeAbout", { website })),
    state, changing, told);
}

function clock(app, phone, attempt, tell) {
  const check = () => attempt(async () => {
    try {
      const offset = await app.askTime(phone());
      const seconds = Math.round(Math.abs(offset) / 1000);
      tell(offset === 0 ? t("clockRight") : t(offset > 0 ? "clockSlow" : "clockFast", { seconds }), offset === 0 ? "good" : "warn");
    } catch (error) {
      if (error instanceof CallFailure) throw error;
      tell(t("failed", { why: error.message }), "bad");
    }
  });
  return h("section", { class: "stack tight" }, h("h2", {}, t("clock")), h("p", { class: "muted" }, t("clockAbout")), button(t("clockCheck"), check));
}

function removal(app, phone, attempt, back, website) {
  const isGone = Boolean(phone().isRefused || phone().unboundBy);
  const drop = async () => {
    await app.forget(phone());
    back();
  };
  const remove = async () => {
    const sure = { title: t("unbindTitle", { website }), text: t(isGone ? "dropText" : "unbindText", { website }), yes: t("unbind"), no: t("cancel") };
    if (!(await confirm(sure))) return;
    if (isGone) await drop();
    else {
      await attempt(async () => {
        await app.responder(phone()).goodbye(true);
        await drop();
      });
    }
  };
  return h(
    "section", { class: "stack tight" }, h("h2", {}, t("removal")), h("p", { class: "muted" }, t("moveHint", { website })),
    button(t("unbind"), remove, "danger"));
}
