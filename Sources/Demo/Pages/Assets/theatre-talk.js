// One message as it is shown: from lane to lane, with its time, what it is for, and its body behind a click.

import { word, words } from "./theatre-words.js";

const lanes = { "website": 0, "relay": 1, "push service": 2, "mail server": 2, "SMS gateway": 2, "phone": 3 };

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function moment(text) {
  const time = element("time", "", new Date(text).toISOString().slice(11, 23));
  time.dateTime = text;
  return time;
}

function decoded(text) {
  const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
  return JSON.parse(new TextDecoder().decode(bytes));
}

// What stands encoded in a body: statements that are signed, and what a phone shows.
function opened(value, name = "") {
  if (Array.isArray(value)) return value.flatMap((one) => opened(one, name));
  if (value && typeof value === "object") return Object.entries(value).flatMap(([key, one]) => opened(one, key));
  if (typeof value !== "string" || !value.startsWith("ey")) return [];
  try {
    const parts = value.split(".");
    if (parts.length === 3) return [{ title: word("signed", { name }), value: decoded(parts[1]) }];
    if (parts.length === 1) return [{ title: word("shown", { name }), value: decoded(value) }];
  } catch {
    // It only looked like it.
  }
  return [];
}

// Which of the explanations is meant.
function about({ from, to, head, body }) {
  const texts = words().about;
  if (from === "relay" && to === "push service") return texts["relay push"];
  if (from === "push service" && to === "phone") return texts["push push"];
  if (from === "mail server" || from === "SMS gateway") return texts[`${head} ${head}`];
  if (/^\d+$/.test(head)) {
    if (Number(head) >= 400) return body.detail ?? body.title ?? texts["answer refused"];
    if (body.pending?.length) return texts["answer pending"];
    if (body.activation) return texts["answer activation"];
    return texts[`answer ${body.login} ${to}`] ?? texts[`answer ${body.login}`];
  }
  const [method, path] = head.split(" ");
  return texts[`${from} ${method} /${(path ?? "").split("/")[1]}`] ?? texts[`${from} ${head}`];
}

function note(entry) {
  const item = element("li", "note");
  item.append(moment(entry.at), ` ${words().notes[entry.note] ?? entry.note}`);
  if (entry.text) item.append(element("pre", "", entry.text));
  return item;
}

export function shown(entry) {
  if (entry.note) return note(entry);
  const [from, to] = [lanes[entry.from], lanes[entry.to]];
  const [first, last] = [Math.min(from, to), Math.max(from, to)];
  const item = element("li", entry.routine ? "way is-routine" : "way");
  const isBad = /^[45]\d\d/.test(entry.head);
  const said = element(
    "details",
    `said from-${first} to-${last} span-${last - first} ${from < to ? "rightwards" : "leftwards"}${isBad ? " is-bad" : ""}`);
  const summary = element("summary");
  const parties = words().parties;
  const phone = entry.phone ? ` ${entry.phone}` : "";
  const name = (party) => parties[party] + (party === "phone" ? phone : "");
  summary.append(
    moment(entry.at), element("span", "who", `${name(entry.from)} → ${name(entry.to)}`), element("span", "head", entry.head));
  const why = about(entry);
  if (why) summary.append(element("span", "about", why));
  said.append(summary);
  const text = [...entry.fields, JSON.stringify(entry.body, null, 2)].join("\n");
  said.append(element("pre", "", text));
  for (const one of opened(entry.body)) {
    said.append(element("h3", "", one.title), element("pre", "", JSON.stringify(one.value, null, 2)));
  }
  for (const pre of said.querySelectorAll("pre")) pre.tabIndex = 0;
  item.append(said);
  return item;
}
