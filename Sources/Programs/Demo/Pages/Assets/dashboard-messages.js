// A message in the list: an arrow between two lanes, an explanation, sender, receiver and time. Its body opens on a click.

import { explain, isAnswer, isBad } from "./dashboard-explanations.js";
import { text, texts } from "./dashboard-texts.js";

const lanes = { "website": 0, "relay": 1, "push service": 2, "mail server": 2, "SMS gateway": 2, "phone": 3 };

function element(name, className, content) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (content !== undefined) made.textContent = content;
  return made;
}

/** The local time, to the millisecond. */
function moment(timestamp) {
  const at = new Date(timestamp);
  const two = (number) => String(number).padStart(2, "0");
  const fraction = String(at.getMilliseconds()).padStart(3, "0");
  const time = element("time", "", `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${fraction}`);
  time.dateTime = timestamp;
  return time;
}

function decoded(encoded) {
  const bytes = Uint8Array.from(atob(encoded.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
  return JSON.parse(new TextDecoder().decode(bytes));
}

// The encoded parts of a body, decoded: signed statements, and the context that a phone shows.
function decodedParts(value, name = "") {
  if (Array.isArray(value)) return value.flatMap((one) => decodedParts(one, name));
  if (value && typeof value === "object") return Object.entries(value).flatMap(([key, one]) => decodedParts(one, key));
  if (typeof value !== "string" || !value.startsWith("ey")) return [];
  try {
    const parts = value.split(".");
    if (parts.length === 3) return [{ title: text("signed", { name }), value: decoded(parts[1]) }];
    if (parts.length === 1) return [{ title: text("shown", { name }), value: decoded(value) }];
  } catch {
    // It is not JSON.
  }
  return [];
}

function eventItem(entry) {
  const item = element("li", "note");
  item.append(moment(entry.at), ` ${texts().events[entry.note] ?? entry.note}`);
  if (entry.text) item.append(element("pre", "", entry.text));
  return item;
}

function arrow(entry) {
  const [from, to] = [lanes[entry.from], lanes[entry.to]];
  const position = `first-${Math.min(from, to)} span-${Math.abs(to - from)} ${from < to ? "rightwards" : "leftwards"}`;
  const drawn = element("span", `flow ${position}${isAnswer(entry) ? " is-answer" : ""}`);
  drawn.ariaHidden = "true";
  return drawn;
}

/** The list item of a message or event. */
export function listItem(entry) {
  if (entry.note) return eventItem(entry);
  const item = element("li", "entry");
  item.classList.toggle("is-routine", Boolean(entry.routine || entry.isRepeated));
  item.classList.toggle("is-bad", isBad(entry));
  item.classList.toggle("is-later", Boolean(entry.isLater));
  const details = element("details", "details");
  const summary = element("summary");
  const name = (system) => texts().systems[system] + (system === "phone" && entry.phone ? ` ${entry.phone}` : "");
  const fact = element("span", "fact", `${name(entry.from)} → ${name(entry.to)}`);
  // Long ids are shortened here and complete below. A push or a mail has neither a path nor a status.
  const head = entry.head.replace(/[0-9a-f]{12,}…?/g, (long) => `${long.slice(0, 6)}…`);
  if (isAnswer(entry) || head.includes(" ")) fact.append(" ", element("span", "head", head));
  fact.append(" ", moment(entry.at));
  summary.append(element("span", "explanation", explain(entry) ?? head), fact);
  details.append(summary);
  const whole = [entry.head, ...entry.fields, JSON.stringify(entry.body, null, 2)].join("\n");
  details.append(element("pre", "", whole));
  for (const one of decodedParts(entry.body)) {
    details.append(element("h3", "", one.title), element("pre", "", JSON.stringify(one.value, null, 2)));
  }
  for (const pre of details.querySelectorAll("pre")) pre.tabIndex = 0;
  item.append(arrow(entry), details);
  return item;
}

/** Marks messages that repeat an earlier one, and the first message after a pause. */
export class MessageMarker {
  #seen = new Set();
  #last = 0;

  mark(entry) {
    if (entry.note || entry.routine) return;
    const { from, to, head, body } = entry;
    if (isAnswer(entry) && (body.pending?.length || body.challenge)) {
      const key = JSON.stringify([from, to, head, body.login, body.code, body.challenge, body.pending, entry.phone]);
      entry.isRepeated = this.#seen.has(key);
      this.#seen.add(key);
      if (entry.isRepeated) return;
    }
    const at = Date.parse(entry.at);
    entry.isLater = this.#last > 0 && at - this.#last > 2000;
    this.#last = at;
  }
}
