/**
 * The check of a phone's binding: it pins the phone's key without trust in the relay.
 *
 * The website adds a secret `k` to the activation URI and draws the QR code itself, so the relay
 * never sees `k`. The phone makes an HMAC with it over its own key.
 */

import { isDeepStrictEqual } from "node:util";
import { BindingError } from "./errors.js";
import { readObject, reading } from "./jsontext.js";
import { isMadeWith, parse, publicJWK } from "./jws.js";
import { acceptsApp } from "./policy.js";
import { webMembers } from "./webphones.js";

function require(holds, reason) {
  if (!holds) throw new BindingError(reason);
}

/** Checks an entry of `devices[]` under each open secret. Returns the record to pin, and its `k`. */
export function checkBinding(policy, device, token, secrets) {
  const { binding } = device;
  require(typeof binding === "string", "incomplete");
  const jws = reading(() => parse(binding, "HS256"), () => new BindingError("malformed"));
  const k = secrets.find((secret) => isMadeWith(jws, secret));
  require(k !== undefined, "code");
  require(jws.header.typ === "twoefay-binding+jwt", "type");
  const { claims, jwk, agreement, web } = reading(() => {
    const claims = readObject(jws.payload);
    const agreement = Object.hasOwn(claims, "agreement") ? publicJWK(claims.agreement) : null;
    return { claims, jwk: publicJWK(claims.jwk), agreement, web: webMembers(claims) };
  }, () => new BindingError("claims"));
  require(claims.v === 1, "claims");
  require(claims.aud === policy.audience, "audience");
  require(claims.id_token === token, "token");
  const isWeb = web.app !== undefined; // a native phone has no page
  require(policy.phones === "any" || isWeb === (policy.phones === "web"), "phone");
  require(!isWeb || acceptsApp(policy, web.app), "app");
  // Secrets are sealed to `agreement`, so the relay must name the one that the phone names.
  require(isDeepStrictEqual(reported(device.jwk), jwk), "key");
  require(isDeepStrictEqual(reported(device.agreement), agreement), "key");
  return { jwk: { ...jwk, ...web }, k };
}

function reported(key) {
  if (key === undefined || key === null) return null;
  return reading(() => publicJWK(key), () => new BindingError("key"));
}
