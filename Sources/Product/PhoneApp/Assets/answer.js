// Signs and sends a decision, and says what became of it.

import { CallFailure } from "./calls.js";
import { visible } from "./context.js";
import { confirm } from "./elements.js";
import { assertOwner } from "./passkey.js";
import { pinKey } from "./pin.js";
import { placeFor } from "./place.js";
import { deliver } from "./requests.js";
import { t } from "./texts.js";

/**
 * Answers a request that the person has seen whole. Returns {title, kind, text} when the request
 * has ended, or {text, at?} when it is still open; `at` names the input that was wrong.
 */
export async function answerWith(app, entry, decision, tell) {
  const { question, challenge, until } = entry;
  const phone = app.current(entry.phone);
  if (decision.word === "approve" && decision.pin && !phone.pinSecret) return { text: t("pinMissing") };
  const responder = app.responder(phone);
  let signed = null;
  const attempt = async (checksOwner) => {
    signed = await sign(app, responder, entry, { ...decision, checksOwner }, tell);
    if (!signed) return { text: t("ownerFailed") };
    tell(t("sending"));
    const outcome = await deliver(responder, signed, until, (error) => {
      tell(error.status === 429 ? t("slow", { seconds: error.retryAfter ?? 2 }) : t("sendingAgain"));
    });
    app.requests.close(challenge);
    const result = ended(decision.word, outcome, visible(question.context.displayName));
    await app.record(recordOf(phone, question.context, decision.word, outcome));
    return result;
  };
  for (let checksOwner = true; ; checksOwner = false) {
    try {
      return await attempt(checksOwner);
    } catch (error) {
      if (!(error instanceof CallFailure)) throw error;
      const isChecked = Boolean(signed?.body.webauthn);
      if (isChecked && isUntaken(error) && (await goesWithout("ownerUntaken", "ownerUntakenText"))) continue;
      return refusal(error, { hasPasskey: Boolean(phone.passkey), isChecked, website: visible(question.context.displayName) });
    }
  }
}

/** Whether a relay of an older version does not know assertions. */
const isUntaken = (error) =>
  error.status === 400 && Array.isArray(error.body.errors) && error.body.errors.some((one) => one?.parameter === "webauthn");

/** Asks whether to approve without the check of the owner. */
const goesWithout = (title, text) =>
  confirm({ title: t(title), text: t(text), yes: t("ownerWithout"), no: t("back"), kind: null });

/** Signs once. Null if the owner was not verified, and the person does not go on without. */
async function sign(app, responder, entry, { word, number, pin = null, checksOwner }, tell) {
  const { phone } = responder;
  const { question } = entry;
  const { demands } = question;
  const place = word === "approve" ? await placeFor(app, entry, tell) : null;
  const posture = demands.isStated && word === "approve" ? { app_version: app.config.version.slice(0, 32) } : undefined;
  const proofs = {};
  if (word === "approve" && pin !== null) {
    tell(t("pinWorks"));
    const key = await pinKey(pin, phone.pinSecret, "pin");
    proofs.pin = (jws) => key.sign(jws);
  }
  const withOwner = word === "approve" && checksOwner && Boolean(phone.passkey);
  if (withOwner) {
    tell(t("ownerAsked"));
    const decided = { word, number, place, posture, uv: "passcode", uvAge: demands.needsOwner ? 0 : undefined };
    try {
      return await responder.sign(question, decided, { ...proofs, owner: (jws) => assertOwner(phone.passkey, jws) });
    } catch (error) {
      if (error instanceof CallFailure) throw error;
      if (!(await goesWithout("ownerTitle", "ownerText"))) return null;
    }
  }
  return responder.sign(question, { word, number, place, posture, uv: "none" }, proofs);
}

function ended(word, outcome, website) {
  if (outcome === null) return { title: t("over"), kind: "warn", text: t("overText") };
  if (outcome.isLate) return { title: t("decided"), kind: "warn", text: t("decidedText", { login: t(outcome.login) }) };
  if (word === "fraud") return { title: t("frozen"), kind: "bad", text: t("frozenText", { website }) };
  if (word === "deny") return { title: t("denied"), kind: "warn", text: t("deniedText", { website }) };
  if (outcome.login === "success") return { title: t("approved"), kind: "good", text: t("approvedText", { website }) };
  return { title: t("notApproved"), kind: "bad", text: t("notApprovedText") };
}

function refusal(error, circumstances) {
  const tries = error.body.tries_left;
  if (error.code === "forbidden") return { text: forbidden(error, circumstances) };
  const texts = {
    pin_required: t("pinMissing"),
    pin_wrong: t("pinWrong", { tries: tries ?? "?" }),
    pin_locked: t("pinLocked"),
    posture_unmet: t("postureUnmet", { demands: visible([error.body.unmet ?? []].flat().join(", ")) }),
  };
  if (error.code in texts) return { text: texts[error.code], at: error.code === "pin_wrong" ? "pin" : null };
  return { text: t("failed", { why: visible(error.message) }) };
}

/** The website does not accept the approval, most likely because nobody checked the owner. */
function forbidden(error, { hasPasskey, isChecked, website }) {
  const name = isChecked ? "forbidden" : hasPasskey ? "forbiddenUnchecked" : "forbiddenNoCheck";
  const why = error.body.detail ?? error.body.title;
  return [t(name, { website }), typeof why === "string" ? t("relaySays", { why: visible(why).replace(/\.$/, "") }) : ""].join(" ").trim();
}

const recordOf = (phone, context, word, outcome) => ({
  phone: phone.id, website: phone.website, displayName: context.displayName, username: context.username,
  service: context.service, action: context.action, place: context.place, word,
  outcome: outcome === null ? "over" : outcome.isLate ? "late" : outcome.login,
});
