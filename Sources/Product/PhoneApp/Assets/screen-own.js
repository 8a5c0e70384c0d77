// The own account as a bound phone sees it: phones, code factors and logins, with the report of a
// login that was somebody else's and the removal of a lost phone.

import { CallFailure } from "./calls.js";
import { visible } from "./context.js";
import { isUnbound } from "./device.js";
import { button, fill, foreign, h, heading, note } from "./elements.js";
import { PhoneAccount, isUnknownRoute } from "./own-account.js";
import { devicesPart, factorsPart, failureText, lostPart, loginsPart } from "./own-parts.js";
import { reportView } from "./report-view.js";
import { t } from "./texts.js";

/** The phones whose relays know the route: nothing on their screens moves after the first time. */
const offered = new Set();

/**
 * The section on the screen of an account that leads to the own account. It is hidden until the
 * relay has answered, and stays so if the relay does not know the route.
 */
export function ownSection(app, phone) {
  const { id } = phone();
  const section = h(
    "section", { class: "stack tight", id: "own", hidden: !offered.has(id) }, h("h2", {}, t("own")), h("p", { class: "muted" }, t("ownAbout")),
    button(t("ownShow"), () => app.shell.go("own", id)));
  if (offered.has(id)) return section;
  new PhoneAccount(app.responder(phone())).fetch().then(
    () => {
      offered.add(id);
      section.hidden = false;
    },
    (error) => {
      if (!(error instanceof CallFailure)) throw error;
      section.hidden = isUnknownRoute(error) || isUnbound(error);
    });
  return section;
}

export function own(app, id) {
  const phone = app.phones.find((one) => one.id === id);
  const node = h("div", { class: "stack loose" });
  const back = button(t("back"), () => app.shell.go("account", id), "quiet");
  if (!phone) {
    fill(node, heading(t("over")), button(t("back"), () => app.shell.go("settings")));
    return { node };
  }
  const source = new PhoneAccount(app.responder(phone));
  let leave = () => {};
  const show = (...parts) => {
    leave();
    leave = () => {};
    const head = heading(t("own"));
    fill(node, head, ...parts, back);
    if (node.isConnected) head.focus();
  };

  const report = (login) => {
    leave();
    const view = reportView({
      login, context: login.question.context, send: () => source.report(login), back: load,
      reported: () => app.record({
        phone: phone.id, website: phone.website, displayName: login.question.context.displayName, username: login.question.context.username,
        service: login.question.context.service, action: login.question.context.action, place: login.question.context.place,
        word: "fraud", outcome: "failure",
      }),
    });
    fill(node, view.node);
    view.start(node);
    leave = view.leave;
  };

  const load = async () => {
    show(h("p", { class: "muted", role: "status" }, t("looking")));
    try {
      const account = await source.fetch();
      const logins = h("div", {}, loginsPart(account, { device: phone.device, report }));
      const lists = h("div", { class: "stack loose" });
      const draw = (found) => fill(lists, devicesPart(found), factorsPart(found));
      draw(account);
      const again = async () => draw(await source.fetch());
      show(
        h("p", { class: "asker" }, foreign(visible(account.displayName)), h("span", { class: "muted small" }, " ", foreign(visible(account.username)))),
        lists, lostPart(source.line, () => again().catch(() => {})), logins);
    } catch (error) {
      if (!(error instanceof CallFailure)) throw error;
      if (isUnbound(error)) await app.refuse(phone);
      const words = isUnbound(error) ? t("refusedText") : isUnknownRoute(error) ? t("ownUnknown") : failureText(error);
      show(note(words, "bad", "alert"), isUnbound(error) ? null : button(t("again"), load));
    }
  };
  load();
  return { node, leave: () => leave() };
}
