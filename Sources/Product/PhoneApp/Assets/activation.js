// The link that binds a phone: the relay, the pin of its authority, and the activation code. It has
// two forms, `twoefay://enrol?…` and `ORIGIN/phone/#…`, with the same parameters.

import { decode, unescape } from "./bytes.js";

const scheme = "twoefay://enrol?";
const webLink = /^(https:\/\/[^/?#]+)\/phone\/#(.+)$/s;

/** A link that has not the form of the protocol. */
export class Malformed extends Error {}

/**
 * A link that this app must not follow. `reason` names a text: `linkMalformed`, `linkNativeOnly`,
 * `linkOtherRelay`, `linkOtherApp` or `linkKeyAtRelay`; `values` are its values.
 */
export class LinkRefused extends Error {
  constructor(reason, values = {}) {
    super(reason);
    Object.assign(this, { reason, values });
  }
}

/** `https://HOST` or `https://HOST:PORT`, without a path. */
export function isOrigin(text) {
  const parts = /^https:\/\/([A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]+\])(?::(\d+))?$/.exec(text);
  if (!parts) return false;
  const [, host, port] = parts;
  if (port !== undefined && !(Number(port) >= 1 && Number(port) <= 65535)) return false;
  return !host.startsWith("[") || URL.canParse(`https://${host}`);
}

/** Whether a text looks like a link of either form, so that it is worth reading. */
export const isLink = (text) => text.startsWith(scheme) || webLink.test(text);

/**
 * Reads a link; throws `Malformed`. Unknown parameters are ignored, because a later relay may add
 * some. `app` is the origin of a web link, or null.
 */
export function readActivation(text) {
  const web = webLink.exec(text);
  if (web) return { ...readQuery(web[2]), app: web[1] };
  if (!text.startsWith(scheme)) throw new Malformed(`it does not begin with ${scheme}`);
  return { ...readQuery(text.slice(scheme.length)), app: null };
}

/** Reads the parameters of a link, which are the fragment of a web link. */
export function readQuery(query) {
  const parameters = readParameters(query);
  const value = (name) => {
    const found = parameters.get(name);
    if (!found) throw new Malformed(`${name} is missing`);
    return found;
  };
  const origin = (name) => {
    const found = value(name);
    if (isOrigin(found)) return found;
    throw new Malformed(`${name} must be https://HOST or https://HOST:PORT, without a path`);
  };
  const relay = origin("relay");
  const website = value("website");
  if (!/^[a-z0-9][a-z0-9.-]{0,63}$/.test(website)) {
    throw new Malformed("website must have at most 64 lower-case letters, digits, dots and dashes");
  }
  const [token, code, pin] = [value("token"), value("code"), value("pin")];
  if (decode(pin)?.length !== 32) throw new Malformed("pin is not a SHA-256 in base64url");
  const k = parameters.has("k") ? decode(parameters.get("k")) : null;
  if (parameters.has("k") && k?.length !== 32) throw new Malformed("k is not 256 bits in base64url");
  const at = parameters.has("at") ? origin("at") : null;
  const phones = parameters.get("phones") ?? null;
  if (phones !== null && phones !== "native" && phones !== "web") throw new Malformed("phones is neither native nor web");
  return { relay, website, token, code, pin, k, at, phones };
}

/**
 * Checks whether this app may follow a link, and returns it with `at`, the origin of its routes.
 *
 * `origin` is that of this page, and `relays` are the origins that it may call. A page whose host
 * the relay serves never takes `k`: the relay could then read it (promise 1 of the threat model).
 */
export function checkActivation(activation, { origin, relays }) {
  const { phones, app, k, relay } = activation;
  if (phones === "native") throw new LinkRefused("linkNativeOnly", { website: activation.website });
  const at = activation.at ?? (relays.includes(origin) ? origin : null);
  if (at === null || !relays.includes(at)) throw new LinkRefused("linkOtherRelay", { relay: at ?? relay });
  if (k !== null && [at, relay].some((one) => isSameHost(one, origin))) {
    throw new LinkRefused("linkKeyAtRelay", { relay });
  }
  if (app !== null && app !== origin) throw new LinkRefused("linkOtherApp", { app });
  return { ...activation, at };
}

/** Reads and checks a link; throws `LinkRefused` for every fault. */
export function takeLink(text, surroundings) {
  try {
    return checkActivation(readActivation(text), surroundings);
  } catch (error) {
    if (error instanceof Malformed) throw new LinkRefused("linkMalformed", { why: error.message });
    throw error;
  }
}

/** Ports do not separate hosts: whoever serves one port can serve the others. */
const isSameHost = (one, other) => new URL(one).hostname === new URL(other).hostname;

function readParameters(query) {
  const found = new Map();
  for (const pair of query.split("&")) {
    const at = pair.indexOf("=");
    const name = at < 0 ? null : unescape(pair.slice(0, at));
    const value = at < 0 ? null : unescape(pair.slice(at + 1));
    if (name === null || value === null) throw new Malformed(`${pair} is not a percent-encoded NAME=VALUE`);
    // If a parameter occurs twice, another reader could use the other value.
    if (found.has(name)) throw new Malformed(`${name} occurs twice`);
    found.set(name, value);
  }
  return found;
}
