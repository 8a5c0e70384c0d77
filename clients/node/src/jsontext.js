/** Strict reading of JSON: what two parsers could read differently is refused. */

const DEEPEST = 64;
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A text that is not in the form that it must have. */
export class Unreadable extends Error {}

/** Runs `read`; if that meets something unreadable, throws the error that `make` returns. */
export function reading(read, make) {
  try {
    return read();
  } catch (error) {
    if (error instanceof Unreadable) throw make(error);
    throw error;
  }
}

/** Returns an object of JSON. Throws Unreadable for other values, and if a name occurs twice. */
export function readObject(bytes) {
  let text, value;
  try {
    text = decoder.decode(bytes);
    value = JSON.parse(text);
  } catch {
    throw new Unreadable("not JSON in UTF-8");
  }
  if (!isObject(value)) throw new Unreadable("not an object");
  requireOneReading(text);
  return value;
}

export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Goes through a text that JSON.parse has accepted, because JSON.parse keeps the last of two
 * members with one name.
 */
function requireOneReading(text) {
  const open = []; // for each open object its names; null for each open list
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === "{" || character === "[") {
      if (open.push(character === "{" ? new Set() : null) > DEEPEST) {
        throw new Unreadable("nested too deeply");
      }
    } else if (character === "}" || character === "]") {
      open.pop();
    } else if (character === '"') {
      const end = endOfString(text, at);
      const value = unescaped(text.slice(at, end));
      if (isName(text, end)) addName(open.at(-1), value);
      at = end - 1;
    }
  }
}

function endOfString(text, start) {
  let at = start + 1;
  while (text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
  return at + 1;
}

function unescaped(token) {
  if (!token.includes("\\")) return token.slice(1, -1);
  const value = JSON.parse(token);
  // Half of a surrogate pair is no character: no database or page could take it.
  if (!value.isWellFormed()) throw new Unreadable("half of a character");
  return value;
}

/** Whether the string that ends here is the name of a member: only names stand before a colon. */
function isName(text, end) {
  let at = end;
  while (" \t\n\r".includes(text[at])) at++;
  return text[at] === ":";
}

function addName(names, name) {
  if (names.has(name)) throw new Unreadable("a name occurs twice");
  names.add(name);
}
