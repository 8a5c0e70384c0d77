// The URI in the QR code that binds a phone: the relay's origin, the pin of its authority, and the activation code.

import { decode, unescape } from "./bytes.js";

const start = "twoefay://enrol?";

export class Malformed extends Error {}

/** `https://HOST` or `https://HOST:PORT`, without a path. */
export function isOrigin(text) {
  const parts = /^https:\/\/([A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]+\])(?::(\d+))?$/.exec(text);
  if (!parts) return false;
  const [, host, port] = parts;
  if (port !== undefined && !(Number(port) >= 1 && Number(port) <= 65535)) return false;
  return !host.startsWith("[") || URL.canParse(`https://${host}`);
}

/** Reads an activation URI; throws `Malformed`. Unknown parameters are ignored, because a later relay may add some. */
export function readActivation(text) {
  if (!text.startsWith(start)) throw new Malformed(`it does not begin with ${start}`);
  const parameters = readParameters(text.slice(start.length));
  const value = (name) => {
    const found = parameters.get(name);
    if (!found) throw new Malformed(`${name} is missing`);
    return found;
  };
  const relay = parameters.get("relay") ?? "";
  if (!isOrigin(relay)) {
    throw new Malformed("relay must be https://HOST or https://HOST:PORT, with no path and no / at the end");
  }
  const website = value("website");
  if (!/^[a-z0-9][a-z0-9.-]{0,63}$/.test(website)) {
    throw new Malformed("website must be a name: at most 64 lowercase letters, digits, dots and dashes");
  }
  const [token, code, pin] = [value("token"), value("code"), value("pin")];
  if (decode(pin)?.length !== 32) throw new Malformed("pin is not a SHA-256 in base64url");
  const k = parameters.has("k") ? decode(parameters.get("k")) : null;
  if (parameters.has("k") && k?.length !== 32) throw new Malformed("k is not 256 bits in base64url");
  return { relay, website, token, code, pin, k };
}

function readParameters(query) {
  const found = new Map();
  for (const pair of query.split("&")) {
    const at = pair.indexOf("=");
    const [name, value] = at < 0 ? [null, null] : [unescape(pair.slice(0, at)), unescape(pair.slice(at + 1))];
    if (name === null || value === null) throw new Malformed(`${pair} is not a percent-encoded NAME=VALUE`);
    // If a parameter occurs twice, another reader could use the other value.
    if (found.has(name)) throw new Malformed(`${name} occurs twice`);
    found.set(name, value);
  }
  return found;
}
