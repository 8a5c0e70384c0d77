// The own account without a phone, opened by a link from a mail of the relay. The link stays in
// memory: neither the address, the history of this tab nor any storage has it.

import { CallFailure, RelayLine } from "./calls.js";
import { visible } from "./context.js";
import { button, fill, foreign, h, heading, note } from "./elements.js";
import { LinkedAccount, isUnknownRoute } from "./own-account.js";
import { devicesPart, factorsPart, failureText, lostPart, loginsPart } from "./own-parts.js";
import { contextOf, reportView } from "./report-view.js";
import { t } from "./texts.js";

/**
 * `host` is the app, or stands for it where no app runs: it has the environment, and `shell.go`.
 * `link` is null if the address was damaged.
 */
export function linked(host, link) {
  const { environment } = host;
  const node = h("div", { class: "stack loose" });
  const leaving = button(t("linkedLeave"), () => host.shell.go("home"), "quiet");
  let leave = () => {};
  const show = (...parts) => {
    leave();
    leave = () => {};
    const head = heading(t("own"));
    fill(node, head, ...parts, leaving);
    if (node.isConnected) head.focus();
  };
  if (link === null) {
    show(note(t("linkedDamaged"), "bad", "alert"));
    return { node };
  }
  // The mail names this page of the relay that signed the link, and no other origin gets it.
  const line = new RelayLine({ at: environment.origin }, environment.carry({ at: environment.origin }));
  const source = new LinkedAccount(link, line);

  const load = async () => {
    show(h("p", { class: "muted", role: "status" }, t("looking")));
    try {
      draw(await source.fetch());
    } catch (error) {
      if (!(error instanceof CallFailure)) throw error;
      const isOver = error.status === 401;
      const words = isOver ? t("linkedOver") : isUnknownRoute(error) ? t("ownUnknown") : failureText(error);
      show(note(words, "bad", "alert"), isOver ? null : button(t("again"), load));
    }
  };
  const draw = (account) => {
    const report = (login) => {
      const view = reportView({ login, context: contextOf(account, login), send: () => source.report(login), back: load });
      fill(node, view.node);
      view.start(node);
      leave = view.leave;
    };
    const lists = h("div", { class: "stack loose" }, devicesPart(account), factorsPart(account));
    const again = async () => {
      const found = await source.fetch();
      fill(lists, devicesPart(found), factorsPart(found));
    };
    show(
      h("p", { class: "asker" }, foreign(visible(account.displayName)), h("span", { class: "muted small" }, " ", foreign(visible(account.username)))),
      note(t("linkedAbout")), loginsPart(account, { device: null, report }), lists, lostPart(line, () => again().catch(() => {})));
  };
  load();
  return { node, leave: () => leave() };
}
