// The PIN of one account: the first one, another one, and a new one after it was forgotten.

import { CallFailure } from "./calls.js";
import { visible } from "./context.js";
import { button, digits, field, fill, form, h, heading, note } from "./elements.js";
import { isPIN, isPUK, makePINSecret, makePUK, pinKey } from "./pin.js";
import { t } from "./texts.js";

export function pin(app, id) {
  const node = h("div", { class: "stack" });
  const phone = () => app.phones.find((one) => one.id === id);
  const back = () => app.shell.go("account", id);
  const show = (title, ...parts) => {
    const head = heading(title);
    fill(node, head, ...parts, button(t("back"), back, "quiet"));
    if (node.isConnected) head.focus();
  };

  const look = async () => {
    show(t("pinTitle"), h("p", { class: "muted", role: "status" }, t("looking")));
    try {
      choose(await app.responder(phone()).pinState());
    } catch (error) {
      if (!(error instanceof CallFailure)) throw error;
      show(t("pinTitle"), note(t("failed", { why: visible(error.message) }), "bad", "alert"));
    }
  };

  const choose = (state) => {
    if (state.state === "none") return ask("set", state);
    const isLocked = state.state === "locked";
    return show(
      t("pinTitle"), note(t(isLocked ? "pinLocked" : "pinIsSet"), isLocked ? "bad" : "good"),
      isLocked ? null : button(t("pin-change"), () => ask("change", state), "primary"),
      button(t("pin-reset"), () => ask("reset", state)), button(t("pin-unlock"), () => ask("unlock", state)));
  };

  const ask = (change, state) => {
    const fields = inputs(change);
    const told = h("p", { role: "status", class: "muted" });
    const submit = async () => {
      if (!check(fields)) return;
      const values = Object.fromEntries(Object.entries(fields).map(([name, { input }]) => [name, input.value.replace(/[\s-]/g, "")]));
      for (const { input } of Object.values(fields)) input.value = "";
      told.textContent = t("pinWorks");
      try {
        await set(change, state, values);
      } catch (error) {
        if (!(error instanceof CallFailure)) throw error;
        if (error.status === 409) return look();
        const tries = error.body.tries_left ?? "?";
        const known = { pin_wrong: "pinWrong", puk_wrong: "pukWrong", pin_locked: "pinLocked", puk_locked: "pukLocked", unlock_wrong: "unlockWrong", unlock_void: "unlockVoid" };
        told.className = "notice bad";
        told.textContent = error.code in known ? t(known[error.code], { tries }) : t("failed", { why: visible(error.message) });
      }
      return undefined;
    };
    show(
      t(`pin-${change}`), h("p", {}, t(`pin-${change}-text`)),
      form(submit, Object.values(fields).map(({ node: one }) => one), told, h("button", { class: "primary" }, t("goOn"))));
  };

  const set = async (change, { version }, values) => {
    // Stored before the first statement, since the relay may take it even if its answer is lost.
    if (!phone().pinSecret) await app.change(phone(), { pinSecret: makePINSecret() });
    const { pinSecret } = phone();
    const isNewPUK = change !== "change";
    const puk = isNewPUK ? makePUK() : null;
    const claims = { change, version: version + 1, pin: (await pinKey(values.fresh, pinSecret, "pin")).jwk };
    if (puk) claims.puk = (await pinKey(puk, pinSecret, "puk")).jwk;
    if (change === "unlock") claims.unlock_code = values.unlock;
    const by = change === "change" ? { member: "pin_signature", key: await pinKey(values.old, pinSecret, "pin") }
      : change === "reset" ? { member: "puk_signature", key: await pinKey(values.puk, pinSecret, "puk") } : null;
    const responder = app.responder(phone());
    await responder.sendPINChange(await responder.signPINChange(claims, by));
    show(
      t("pinDone"), puk ? h(
        "section", { class: "stack tight" }, h("h2", {}, t("puk")),
        h("p", { class: "code large", id: "puk", dir: "ltr" }, puk.match(/.{4}/g).join(" ")), h("p", { class: "hint" }, t("pukHint")))
        : note(t("saved"), "good"));
  };

  look();
  return { node };
}

/** The inputs of a change, by the names of what they are for. */
function inputs(change) {
  const secret = (label) => field(t(label), digits({ type: "password", maxlength: "16" }));
  return {
    ...(change === "change" ? { old: secret("pinOld") } : {}),
    ...(change === "reset" ? { puk: secret("puk") } : {}),
    ...(change === "unlock" ? { unlock: secret("unlockCode") } : {}),
    fresh: secret("pinNew"),
    again: secret("pinAgain"),
  };
}

function check({ old, puk, unlock, fresh, again }) {
  const plain = ({ input }) => input.value.replace(/[\s-]/g, "");
  if (old && !isPIN(plain(old))) old.complain(t("pinForm"));
  else if (puk && !isPUK(plain(puk))) puk.complain(t("pukForm"));
  else if (unlock && !/^[0-9]{8}$/.test(plain(unlock))) unlock.complain(t("unlockForm"));
  else if (!isPIN(plain(fresh))) fresh.complain(t("pinForm"));
  else if (plain(fresh) !== plain(again)) again.complain(t("pinDiffers"));
  else return true;
  return false;
}
