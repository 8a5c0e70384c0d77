// A request as the relay lists it: what the person is shown, read from the very bytes that the answer is about.

import { decode, moment, readObject } from "./bytes.js";

/** Why nothing may be signed. `challenge` is null where not even that could be read. */
export class Refused extends Error {
  constructor(challenge, reason) {
    super(reason);
    this.challenge = challenge;
  }
}

/** What the relay made up to name something. */
export const isID = (text) => typeof text === "string" && /^[A-Za-z0-9_-]{1,128}$/.test(text);

/** An entry of `pending`, for the phone of that website. Throws `Refused`. */
export function readQuestion(entry, website, now) {
  if (entry === null || typeof entry !== "object" || !isID(entry.challenge)) {
    throw new Refused(null, "it has no challenge");
  }
  const { challenge, nonce } = entry;
  const [bytes, expiresAt] = [decode(entry.context), moment(entry.expires_at)];
  if (typeof nonce !== "string" || bytes === null || expiresAt === null) {
    throw new Refused(challenge, "nonce, context or expires_at is missing");
  }
  let context;
  try {
    context = readContext(bytes);
  } catch (error) {
    throw new Refused(challenge, `its context is not as it must be: ${error.message}`);
  }
  if (context.website !== website) {
    throw new Refused(challenge, "it is of another website than this phone is bound to");
  }
  // By the relay's clock: the phone's own decides nothing.
  return { challenge, nonce, bytes, context, timeLeft: expiresAt - now };
}

/** Throws where the bytes are not what this phone can show. Members that it does not know are passed over. */
export function readContext(bytes) {
  const object = readObject(bytes);
  if (object.v !== 1) throw new Error("its version is not known here; a newer phone may know it");
  const text = (name) => checked(object[name] ?? null, name);
  const needed = (name) => {
    const value = text(name);
    if (value === null) throw new Error(`${name} is missing`);
    return value;
  };
  const time = (name) => {
    const value = moment(object[name]);
    if (value === null) throw new Error(`${name} is no time`);
    return value;
  };
  const digits = object.number_digits;
  if (!Number.isInteger(digits) || digits < 0 || digits > 9) throw new Error("number_digits is missing");
  return {
    website: needed("website"),
    displayName: needed("display_name"),
    username: needed("username"),
    service: text("service"),
    action: text("action"),
    details: readDetails(object.details ?? []),
    ip: text("ip"),
    place: text("place"),
    userAgent: text("user_agent"),
    device: text("device"),
    /** The website's own nonce; shown to no one. */
    request: text("request"),
    numberDigits: digits,
    createdAt: time("created_at"),
    expiresAt: time("expires_at"),
  };
}

function readDetails(list) {
  if (!Array.isArray(list)) throw new Error("details is no list");
  return list.map((entry) => {
    const [label, value] = [checked(entry?.label ?? null, "details"), checked(entry?.value ?? null, "details")];
    if (label === null || value === null) throw new Error("a detail has no label or no value");
    return { label, value };
  });
}

/** Control characters, marks of text direction, and characters that show nothing: see docs/phones/device-protocol.md. */
const hidden = new RegExp(
  "[\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f" +
    "\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb" +
    "\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}]",
  "u",
);

function checked(value, name) {
  if (value === null) return null;
  if (typeof value !== "string" || /\p{Cs}/u.test(value)) throw new Error(`${name} is no text`);
  if (hidden.test(value)) {
    throw new Error(`${name} holds a character that cannot be shown`);
  }
  return value;
}

/** The same for a text of several lines, which are its writer's own. */
export const visibleLines = (text) => text.trim().split(/\r?\n/).map(visible).join("\n");

/** Texts of others on their way to the screen: what is not seen stands there by its number, as `\u{200b}`. */
export function visible(text) {
  return text.replace(
    /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu,
    (character) => `\\u{${character.codePointAt(0).toString(16)}}`,
  );
}
