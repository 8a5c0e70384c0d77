/**
 * The check of a receipt: after it, the website need not trust the relay (receipts.md).
 *
 * Each fault has a stable word, in `ReceiptError.reason`. Nothing here spends the request: the
 * caller does so last, so that a receipt that fails another check uses up nothing.
 */

import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { ReceiptError } from "./errors.js";
import { readObject, reading } from "./jsontext.js";
import { decode, encode, isSignedBy, parse } from "./jws.js";
import { ASSURANCES, VERIFICATIONS } from "./login.js";
import { isApart, LONGEST_LIFE } from "./policy.js";
import { verifiesOwner } from "./webphones.js";

/** The most that a code of each factor assures (docs/websites/api.md). */
const MOST_OF_CODE = new Map([
  ["totp", "substantial"],
  ["hotp", "substantial"],
  ["recovery", "substantial"],
  ["sms", "restricted"],
  ["mail", "low"],
  ["operator", "low"],
]);
const OF_RELAY = ["place", "device", "created_at", "expires_at"];
const MOST_BYTES = 65_536;

function require(holds, reason, field = null) {
  if (!holds) throw new ReceiptError(reason, field);
}

/** Whether `word` stands at `least` or later in the order. Unknown words are nowhere. */
function isAtLeast(order, word, least) {
  return order.includes(least) && order.indexOf(word) >= order.indexOf(least);
}

/**
 * Checks a success that the relay reports. Returns the receipt's claims, or null if a word of the
 * relay was accepted: a code, or the phone of a user of whom none was ever pinned. Returns the
 * relay's word of the assurance, too, lowered if a web phone cannot reach it.
 */
export function checkSuccess(policy, login, answer, { pins, wasPinned, now }) {
  const claims = proved(policy, login, answer, pins, wasPinned);
  require(answer.challenge === login.challenge, "challenge");
  const isLowered = claims !== null && !canBeHigh(policy, pins.get(answer.device));
  const assurance = isLowered && answer.assurance === "high" ? "substantial" : answer.assurance;
  checkStrength(login, answer, assurance);
  require(now - login.askedAt <= LONGEST_LIFE, "age");
  return { claims, assurance };
}

/**
 * Whether the password and the phone are two things: who changes the pages of one host, where users
 * type the password and the web phone runs, has both.
 */
function canBeHigh(policy, { app }) {
  return app === undefined || isApart(policy, app);
}

function proved(policy, login, answer, pins, wasPinned) {
  const { proof } = answer;
  if (proof === "code" && policy.acceptCodes) return null;
  // An unpinned phone counts as well: the relay reports the unbinding of phones.
  const trustsPhones = policy.allowUnpinned && !wasPinned && pins.size === 0;
  if (["signed", "certificate", "website"].includes(proof) && trustsPhones) return null;
  require(proof === "signed", "not_signed");
  return checkReceipt(policy, login, answer, pins);
}

/** The relay's word, but an honest one must not be weaker than the website asked. */
function checkStrength(login, answer, assurance) {
  const { factor, proof } = answer;
  const isCode = proof === "code";
  require(!isCode || MOST_OF_CODE.has(factor), "factor");
  if (login.factors !== null) {
    require(login.factors.includes(factor === "pull" ? "push" : factor), "factor");
  }
  if (isCode && ASSURANCES.includes(assurance)) {
    require(isAtLeast(ASSURANCES, MOST_OF_CODE.get(factor), assurance), "assurance");
  }
  if (login.minAssurance !== null) {
    require(isAtLeast(ASSURANCES, assurance, login.minAssurance), "assurance");
  }
}

/** The steps 1 to 11 of receipts.md. Returns the claims, with the `uv` that counts. */
function checkReceipt(policy, login, answer, pins) {
  const { device, receipt, context } = answer;
  require([device, receipt, context].every((value) => typeof value === "string"), "incomplete");
  require(pins.has(device), "unknown_device");
  const { header, claims } = signed(receipt, pins.get(device));
  require(claims.aud === policy.audience, "audience");
  require(header.kid === device, "device");
  require(claims.decision === "approve", "decision");
  require(claims.request === login.request && login.request !== "", "request");
  require((claims.number ?? null) === login.number, "number");
  checkContext(policy, login, context, claims.context);
  require(claims.challenge === login.challenge, "challenge");
  claims.uv = verification(claims.uv, pins.get(device), receipt, answer.webauthn);
  checkVerification(policy, claims);
  require((login.number ?? "").length >= policy.leastDigits, "digits");
  return claims;
}

function signed(receipt, jwk) {
  const jws = reading(() => parse(receipt, "ES256"), () => new ReceiptError("malformed"));
  require(isSignedBy(jws, jwk), "signature");
  require(jws.header.typ === "twoefay-decision+jwt", "type");
  const claims = reading(() => readObject(jws.payload), () => new ReceiptError("claims"));
  require(areClaims(claims), "claims");
  return { header: jws.header, claims };
}

function areClaims(claims) {
  const isText = (name) => typeof claims[name] === "string";
  const isAbsent = (name) => !Object.hasOwn(claims, name);
  return claims.v === 1
    && ["aud", "challenge", "decision", "nonce", "context", "uv"].every(isText)
    // These are texts or absent: the number 7 is not the text "07".
    && ["request", "number"].every((name) => isAbsent(name) || isText(name))
    && VERIFICATIONS.includes(claims.uv)
    && Number.isSafeInteger(claims.iat)
    && (isAbsent("uv_age") || Number.isSafeInteger(claims.uv_age));
}

/**
 * The phone's word, as far as it counts. A web phone's owner has to prove it, and WebAuthn does not
 * say which check it was.
 */
function verification(word, record, receipt, assertion) {
  if (record.app === undefined || word === "none") return word;
  return verifiesOwner(record, receipt, assertion) ? "passcode" : "none";
}

function checkVerification(policy, claims) {
  require(isAtLeast(VERIFICATIONS, claims.uv, policy.leastUserVerification), "user_verification");
  const longest = policy.longestVerificationAge;
  if (longest === null) return;
  const age = claims.uv_age ?? -1;
  require(claims.uv !== "none" && age >= 0 && age <= longest, "user_verification_age");
}

/** The phone showed exactly what the website sent, and nothing else. */
function checkContext(policy, login, context, digest) {
  const isWrong = () => new ReceiptError("context");
  const shown = reading(() => decode(context), isWrong);
  require(shown.length <= MOST_BYTES, "context");
  require(encode(createHash("sha256").update(shown).digest()) === digest, "context_digest");
  const members = reading(() => readObject(shown), isWrong);
  const expected = {
    v: 1,
    website: policy.website,
    number_digits: (login.number ?? "").length,
    // The operator may rename a website, so its name counts only if the website demands one.
    display_name: policy.displayName ?? members.display_name,
    ...login.sent,
  };
  const names = Object.keys(members).filter((name) => !OF_RELAY.includes(name));
  for (const name of [...Object.keys(expected), ...names]) {
    const isThere = names.includes(name) && Object.hasOwn(expected, name);
    require(isThere && isDeepStrictEqual(members[name], expected[name]), "field", name);
  }
}
