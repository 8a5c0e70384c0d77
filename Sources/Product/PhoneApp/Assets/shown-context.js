// A context on the screen: its rows, and the watch that it was seen whole before it is answered.

import { visible } from "./context.js";
import { button, foreign, h } from "./elements.js";
import { Seen } from "./seen.js";
import { t, timeOf } from "./texts.js";

const shown = (value) => (value === null ? null : foreign(visible(value)));

/** All values of the context, complete and in the order of the protocol, as [label, value]. */
export const contextRows = (context, time = timeOf) => [
  [t("account"), shown(context.username)],
  [t("service"), shown(context.service)],
  [t("action"), shown(context.action)],
  ...context.details.map((detail) => [shown(detail.label), shown(detail.value)]),
  [t("device"), shown(context.device)],
  [t("place"), shown(context.place)],
  [t("ip"), shown(context.ip)],
  [t("userAgent"), shown(context.userAgent)],
  [t("askedAt"), time(context.createdAt)],
];

/** The website that asks, with its name at the relay if it shows another one. */
export function askerOf({ displayName, website }) {
  const name = visible(displayName);
  return h(
    "p", { class: "asker" }, foreign(name),
    name === website ? null : h("span", { class: "muted small" }, " (", foreign(visible(website)), ")"));
}

/**
 * Watches whether the parts were on the screen as a whole; `changed` is called when more was seen.
 * `rest` is an element at the lower edge of the screen, which leads to what was not seen yet.
 */
export class Reading {
  constructor(parts, changed) {
    this.seen = new Seen(parts, () => {
      this.rest.hidden = this.isWhole;
      changed();
    });
    const next = () => this.seen.next?.scrollIntoView({ block: "start" });
    this.rest = h("div", { class: "rest stack tight" }, h("p", { class: "hint" }, t("notWhole")), button(t("showRest"), next, "quiet"));
    this.rest.hidden = this.isWhole;
  }

  get isWhole() {
    return this.seen.isWhole;
  }

  /** Begins to look once `node`, which has the parts, is on the screen. */
  start(node) {
    // Only what is on the screen has a height: whatever `rest` covers is not seen.
    requestAnimationFrame(() => {
      this.seen.start({ root: node.parentElement, rootMargin: `0px 0px -${this.rest.offsetHeight}px 0px` });
    });
  }

  stop() {
    this.seen.stop();
  }
}
