// Codes to type at a website: by time (TOTP), each with its remaining seconds, and by counter
// (HOTP).

import { visible } from "./context.js";
import { button, confirm, foreign, h, heading } from "./elements.js";
import { codeAt, codeOf } from "./otp.js";
import { t } from "./texts.js";

export function codes(app) {
  const list = h("ul", { class: "list" });
  const none = h("p", {}, t("noCodes"));
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
  let drawn = "";
  const drawIfChanged = () => {
    const key = app.codes.map(({ id, counter }) => `${id} ${counter}`).join();
    if (key !== drawn) draw();
    drawn = key;
  };
  drawIfChanged();
  const ticking = setInterval(tick, 1000);
  return {
    draw: drawIfChanged,
    leave: () => clearInterval(ticking),
    node: h(
      "div", { class: "stack" }, heading(t("codes")), none, list,
      button(t("addCode"), () => app.shell.go("add"), app.codes.length === 0 ? "primary" : null),
      h("details", {}, h("summary", {}, t("noCodeHere")), h("p", { class: "muted" }, t("recoveryCodeHint")))),
  };
}

function row(app, entry) {
  const names = { issuer: visible(entry.issuer), account: visible(entry.account) };
  const code = h("output", { class: "otp", dir: "ltr", "aria-live": "off", "aria-label": t("codeFor", names) });
  const remove = async () => {
    const isSure = await confirm({
      title: t("removeCode", names), text: t("removeCodeText"), yes: t("remove"), no: t("cancel"),
    });
    if (isSure) await app.removeCode(entry);
  };
  const { show, now } = entry.counter === undefined ? byTime(app, entry, code) : byCounter(app, entry, code);
  return {
    show,
    node: h(
      "li", { class: "otp-row" },
      h("div", {}, h("strong", {}, foreign(names.issuer)), h("br"), h("span", { class: "muted small" }, foreign(names.account))),
      h("div", { class: "now" }, code, now),
      // The codes of an enrolment go with its account.
      entry.phone ? null : h("button", { type: "button", class: "quiet", "aria-label": t("removeCode", names), on: { click: remove } }, t("remove"))),
  };
}

const inGroups = (code) => `${code.slice(0, Math.ceil(code.length / 2))} ${code.slice(Math.ceil(code.length / 2))}`;

function byTime(app, entry, code) {
  const time = h("span", { class: "muted small" });
  const bar = h("progress", { max: String(entry.period), "aria-hidden": "true" });
  // The codes of an enrolment follow the clock of its relay, all others this device's own.
  const offset = () => app.phones.find(({ id }) => id === entry.phone)?.offset ?? 0;
  const show = async () => {
    const now = await codeAt(Date.now() + offset(), entry);
    const words = inGroups(now.code);
    if (code.textContent !== words) code.textContent = words;
    time.textContent = t("secondsLeft", { seconds: now.left });
    bar.value = now.left;
  };
  return { show, now: h("div", { class: "row" }, bar, time) };
}

function byCounter(app, entry, code) {
  const next = async () => {
    // The counter is stored before the code is shown, so that no code is shown twice.
    const { counter } = entry;
    const words = inGroups(await codeOf(counter, entry));
    await app.saveCode({ ...entry, counter: counter + 1, shown: words });
    app.shell.announce(t("codeShown", { code: words }));
  };
  return {
    show: () => { code.textContent = entry.shown ?? "— —"; },
    now: button(t("nextCode"), next),
  };
}
