// Makes elements without HTML, so texts of others stay text.

/**
 * Makes an element. `on` has the listeners; the other properties are attributes, without those that
 * are null or false.
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  return fill(element, ...children);
}

/** Replaces the children of an element; null and false are left out. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** A heading that can get the focus when its screen is shown. */
export const heading = (words, tag = "h1") => h(tag, { tabindex: "-1" }, words);

export const button = (words, listener, kind = null) =>
  h("button", { type: "button", class: kind, on: { click: listener } }, words);

/**
 * A text of others. Its direction follows its own letters, and it does not mix with its
 * surroundings.
 */
export const foreign = (words, properties = {}) => h("bdi", { dir: "auto", ...properties }, words);

export const note = (words, kind = "", role = null) => h("p", { class: `notice ${kind}`.trim(), role }, words);

/** A list of [label, value], without empty values. Labels and values may be elements. */
export const facts = (rows) =>
  h("dl", { class: "facts" }, rows.filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(([label, value]) => h("div", { class: "fact" }, h("dt", {}, label), h("dd", {}, value))));

/** A form that does not leave the page. */
export const form = (submit, ...children) =>
  h("form", { novalidate: true, on: { submit: (event) => { event.preventDefault(); submit(); } } }, ...children);

const drawings = {
  home: "M4 11.5 12 5l8 6.5V20h-5.5v-5h-5v5H4z",
  codes: "M4 7h16v10H4z M8 12h.01 M12 12h.01 M16 12h.01",
  messages: "M4 6h16v11H9l-5 4z",
  settings: "M5 7h14 M5 12h14 M5 17h14 M9 5v4 M15 10v4 M8 15v4",
};

/** A drawing beside a text, which alone says what it means. */
export function icon(name) {
  const make = (tag, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const svg = make("svg", { viewBox: "0 0 24 24", "aria-hidden": "true", class: "icon" });
  svg.append(make("path", { d: drawings[name] }));
  return svg;
}

let made = 0;

/** An input with its label, a hint and an error message. */
export function field(label, input, hint = null) {
  made += 1;
  const id = `field-${made}`;
  const error = h("p", { class: "error", id: `${id}-error`, role: "alert", hidden: true });
  input.id = id;
  const told = hint ? h("p", { class: "hint", id: `${id}-hint` }, hint) : null;
  if (told) input.setAttribute("aria-describedby", told.id);
  const node = h("div", { class: "field" }, h("label", { for: id }, label), told, input, error);
  /** Shows an error and focuses the input; null removes the error. */
  const complain = (words) => {
    error.textContent = words ?? "";
    error.hidden = words === null;
    const ids = [told?.id, words === null ? null : error.id].filter(Boolean).join(" ");
    input.setAttribute("aria-invalid", String(words !== null));
    if (ids) input.setAttribute("aria-describedby", ids);
    else input.removeAttribute("aria-describedby");
    if (words !== null) input.focus();
  };
  // Hide the error while the user corrects it.
  input.addEventListener("input", () => {
    if (!error.hidden) complain(null);
  });
  return { node, input, complain };
}

/** An input for digits that others must not read over a shoulder, or for a number from a page. */
export const digits = (properties = {}) =>
  h("input", { class: "digits", inputmode: "numeric", autocomplete: "off", autocapitalize: "off", spellcheck: "false", ...properties });

/**
 * Asks for confirmation before an action that cannot be undone. Returns true or false, or null if
 * the question was closed without an answer.
 */
export function confirm({ title, text, yes, no, kind = "danger primary" }) {
  return new Promise((resolve) => {
    made += 1;
    const id = `dialog-${made}`;
    const end = (answer) => () => dialog.close(answer);
    // Enter must not confirm by mistake.
    const stay = button(no, end("no"));
    stay.autofocus = true;
    const dialog = h(
      "dialog", { "aria-labelledby": id, class: "card" }, h("h2", { id }, title), h("p", {}, text),
      h("div", { class: "stack tight" }, button(yes, end("yes"), kind), stay));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve({ yes: true, no: false }[dialog.returnValue] ?? null);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
