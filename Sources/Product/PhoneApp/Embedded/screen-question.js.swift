// Written by dev/embed-pages from Assets/screen-question.js. Do not edit.
extension AppFile {
    static let screenQuestionJS = AppFile(
        "screen-question.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The screen of a request: all of its context, the number to enter, and three answers of equal
            // size. The answers can be given only after every part of the request was on the screen.

            import { visible } from "./context.js";
            import { answerWith } from "./answer.js";
            import { button, confirm, digits, facts, field, fill, form, h, heading, note } from "./elements.js";
            import { isPIN } from "./pin.js";
            import { locate } from "./place.js";
            import { Reading, askerOf, contextRows } from "./shown-context.js";
            import { t } from "./texts.js";

            export function question(app, challenge) {
              const leaving = new AbortController();
              const node = h("div", { class: "stack question" });
              const home = () => app.shell.go("home");
              const show = (title, kind, words) => {
                leaving.abort();
                const head = heading(title);
                fill(node, head, note(words, kind, "status"), button(t("done"), home, "primary"));
                if (node.isConnected) head.focus();
              };
              const entry = app.requests.find(challenge);
              if (!entry) {
                show(t("over"), "", t("overText"));
                return { node };
              }
              const { context, demands } = entry.question;
              const website = visible(context.displayName);
              const isEnrolment = context.action === "enrol";

              const number = context.numberDigits === 0 ? null
                : field(t("number"), digits({ maxlength: String(context.numberDigits), name: "number" }), t("numberHint"));
              const pin = demands.pin === "sign"
                ? field(t("pin"), digits({ type: "password", maxlength: "12", name: "pin" })) : null;
              const told = h("p", { role: "status" });
              const left = h("p", { class: "muted small", role: "timer", "aria-live": "off" });
              const asker = askerOf(context);
              const list = facts(contextRows(context));
              let isSending = false;

              const words = ["approve", "deny", "fraud"];
              const buttons = words.map((word) => {
                const kind = { approve: "primary", deny: null, fraud: "danger" }[word];
                return h("button", { type: "button", class: kind, "data-word": word, on: { click: () => answer(word) } }, t(word));
              });
              const enable = () => {
                const isReady = reading.isWhole && !isSending;
                for (const one of buttons) one.disabled = !isReady;
                if (demands.pin === "locked" || demands.pin === "set") buttons[0].disabled = true;
              };

              /** The decision for a word; null if the person still has to type or to confirm something. */
              const decide = async (word) => {
                if (word === "fraud") {
                  const isSure = await confirm({
                    title: t("fraudTitle"), text: t("fraudText", { website }), yes: t("fraudYes"), no: t("back"),
                  });
                  return isSure ? { word } : null;
                }
                if (word === "deny") return { word };
                const typed = number?.input.value.trim();
                if (number && !new RegExp(`^[0-9]{${context.numberDigits}}$`).test(typed)) {
                  number.complain(t("numberWrong", { digits: context.numberDigits }));
                  return null;
                }
                if (pin && !isPIN(pin.input.value)) {
                  pin.complain(t("pinForm"));
                  return null;
                }
                return { word, number: typed, pin: pin?.input.value ?? null };
              };

              const answer = async (word) => {
                // The only way to a signature: nothing is signed that was not shown whole.
                if (isSending || !reading.isWhole || leaving.signal.aborted) return;
                const decision = await decide(word);
                if (!decision) return;
                isSending = true;
                enable();
                told.className = "muted";
                const outcome = await answerWith(app, entry, decision, (words_) => { told.textContent = words_; });
                isSending = false;
                if (pin) pin.input.value = "";
                if (outcome.title) return show(outcome.title, outcome.kind, outcome.text);
                enable();
                const isAtPIN = outcome.at === "pin" && pin;
                told.className = isAtPIN ? "" : "notice bad";
                told.textContent = isAtPIN ? "" : outcome.text;
                if (isAtPIN) pin.complain(outcome.text);
                else told.scrollIntoView({ block: "nearest" });
                return undefined;
              };

              const head = heading(t(isEnrolment ? "approvePhone" : context.action === "recover" ? "approveRecovery" : context.action ? "agree" : "isThisYou"));
              const sendsPlace = entry.question.asksPlace && app.current(entry.phone).sharesPlace === true;
              // The browser then has the place when the person approves.
              if (sendsPlace) locate();
              const warnings = [
                isEnrolment ? note(t(hasKey(context) ? "enrolKey" : "enrolHint", { website }), "warn") : null,
                context.action === "recover" ? note(t("recoverHint"), "warn") : null,
                ...demandNotes(app, entry, website),
                sendsPlace ? note(t("placeSent", { website })) : null,
              ].filter(Boolean);
              const reading = new Reading([head, asker, ...warnings, ...list.children], enable);
              fill(
                node, head, h("div", { class: "row apart" }, asker, left), ...warnings, list, reading.rest,
                form(
                  () => answer("approve"), number?.node ?? null, pin?.node ?? null,
                  h("div", { class: "answers" }, buttons), told));
              enable();
              reading.start(node);

              const over = () => {
                if (!isSending && !app.requests.find(challenge)) show(t("over"), "warn", t("overText"));
              };
              app.requests.addEventListener("change", over, { signal: leaving.signal });
              const tick = () => {
                const seconds = Math.max(0, Math.round((entry.until - performance.now()) / 1000));
                left.textContent = t("timeLeft", { time: `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}` });
                over();
              };
              tick();
              const ticking = setInterval(tick, 1000);
              leaving.signal.addEventListener("abort", () => {
                clearInterval(ticking);
                reading.stop();
              });
              app.remember(entry.phone, context);
              return { node, leave: () => leaving.abort() };
            }

            const hasKey = (context) => context.details.some(({ label }) => label === "key");

            /** What this phone must do, or cannot do, before it approves. */
            function demandNotes(app, { phone: given, question: { demands } }, website) {
              const phone = app.current(given);
              const lacking = [...demands.missing, ...(demands.needsOwner && !phone.passkey ? ["max_uv_age"] : [])];
              const toPIN = () => button(t("pinTitle"), () => app.shell.go("pin", phone.id), "quiet");
              return [
                lacking.length > 0 ? note(t("demands", { website, demands: visible(lacking.join(", ")) }), "warn") : null,
                demands.pin === "set" ? h("div", { class: "notice warn stack tight" }, h("p", {}, t("pinNeeded", { website })), toPIN()) : null,
                demands.pin === "locked" ? h("div", { class: "notice bad stack tight" }, h("p", {}, t("pinLocked")), toPIN()) : null,
              ];
            }

            """#)
}
