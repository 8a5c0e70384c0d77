/** The relay, for one website: the client with the website's files and real connections. */

import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { Client } from "./client.js";
import { makePolicy, requireNames } from "./policy.js";
import { realWorld } from "./retries.js";
import { Wire } from "./wire.js";

const OPTIONS = [
  "ca", "certificate", "key", "store", "displayName", "leastUserVerification",
  "longestVerificationAge", "leastDigits", "allowUnpinned", "acceptCodes", "phones",
  "appOrigin", "loginOrigins",
];

/** The relay, for one website. Make one for the process, and share it. */
export class Relay extends Client {
  #wire;

  /**
   * `origin` is the relay's, as in its settings: https://login.example.com:8080. `ca` is the
   * relay's ca.pem; `certificate` and `key` are the website's files, as paths or as bytes. `store`
   * keeps pinned keys.
   *
   * `acceptCodes` lets users in by codes too, for which only the relay vouches. `allowUnpinned`
   * trusts the relay for users without a pinned phone. Both give up a part of the strong form.
   *
   * `phones` is `native` or `web` if only such phones may be pinned. `appOrigin` is the origin of
   * the web app that the website chose: the QR code leads there, and web phones of other pages are
   * refused. `loginOrigins` are the website's own origins: a web phone's login counts as `high` only
   * if its page has none of their hosts, and without them it is `substantial` at most.
   */
  constructor(origin, options) {
    requireNames(options, OPTIONS);
    const { ca, certificate, key, store, ...wishes } = options;
    const cert = bytesOf("certificate", certificate);
    const policy = makePolicy({ ...wishes, origin: originOf(origin), website: websiteOf(cert) });
    const tls = { ca: bytesOf("ca", ca), cert, key: bytesOf("key", key) };
    requireTLS(tls);
    const wire = new Wire(origin, tls);
    super(policy, store, realWorld(wire.exchange));
    this.#wire = wire;
  }

  /** Closes idle connections now, and the others when their requests have ended. */
  close() {
    this.#wire.close();
  }
}

/** Checks the relay's origin. Phones sign it, so it must be exactly that of its settings. */
function originOf(text) {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url?.protocol !== "https:" || !/^https:\/\/[^/?#@\\\s]+$/.test(text)) {
    throw new TypeError(`${text} is not an origin such as https://login.example.com:8080`);
  }
  return text;
}

/** The website's name, from its certificate. */
function websiteOf(certificate) {
  const names = new X509Certificate(certificate).subjectAltName ?? "";
  const uris = names.split(", ").filter((name) => name.startsWith("URI:"));
  const found = uris.length === 1 && /^URI:twoefay:website:([^",]+)$/.exec(uris[0]);
  if (!found) throw new TypeError("the option certificate is not the certificate of a website");
  return found[1];
}

/** A key of another certificate would fail with each call, and look like a fault of the relay. */
function requireTLS(files) {
  try {
    createSecureContext(files);
  } catch (error) {
    throw new TypeError(`the options ca, certificate and key: ${error.message}`, { cause: error });
  }
}

function bytesOf(name, file) {
  if (file instanceof Uint8Array) return file;
  if (typeof file === "string" || file instanceof URL) return readFileSync(file);
  throw new TypeError(`the option ${name} must be a path, or the bytes of a file`);
}
