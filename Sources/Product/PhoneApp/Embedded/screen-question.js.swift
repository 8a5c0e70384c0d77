// Written by dev/embed-pages from Assets/screen-question.js. Do not edit.
extension AppFile {
    static let screenQuestionJS = AppFile(
        "screen-question.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The screen of a request: all of its context, the number to enter, and three answers of equal
            // size. The answers can be given only after every part of the request was on the screen.

            import { visible } from "./context.js";
            import { answerWith } from "./answer.js";
            import { button, confirm, digits, facts, field, fill, foreign, form, h, heading, note } from "./elements.js";
            import { isPIN } from "./pin.js";
            import { locate } from "./place.js";
            import { Seen } from "./seen.js";
            import { t, timeOf } from "./texts.js";

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
              const asker = h(
                "p", { class: "asker" }, foreign(website),
                website === context.website ? null : h("span", { class: "muted small" }, ` (${context.website})`));
              const list = facts(rows(context));
              const rest = h("div", { class: "rest stack tight" }, h("p", { class: "hint" }, t("notWhole")), button(t("showRest"), () => showRest(), "quiet"));
              let isSending = false;

              const words = ["approve", "deny", "fraud"];
              const buttons = words.map((word) => {
                const kind = { approve: "primary", deny: null, fraud: "danger" }[word];
                return h("button", { type: "button", class: kind, "data-word": word, on: { click: () => answer(word) } }, t(word));
              });
              const enable = () => {
                const isReady = seen.isWhole && !isSending;
                for (const one of buttons) one.disabled = !isReady;
                if (demands.pin === "locked" || demands.pin === "set") buttons[0].disabled = true;
                rest.hidden = seen.isWhole;
              };
              const showRest = () => {
                seen.next?.scrollIntoView({ block: "start" });
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
                if (isSending || !seen.isWhole || leaving.signal.aborted) return;
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
              fill(
                node, head, h("div", { class: "row apart" }, asker, left), ...warnings, list, rest,
                form(
                  () => answer("approve"), number?.node ?? null, pin?.node ?? null,
                  h("div", { class: "answers" }, buttons), told));
              const seen = new Seen([head, asker, ...warnings, ...list.children], enable);
              enable();
              // Only what is on the screen has a height: whatever the button at its lower edge covers is not
              // seen.
              requestAnimationFrame(() => seen.start({ root: node.parentElement, rootMargin: `0px 0px -${rest.offsetHeight}px 0px` }));

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
                seen.stop();
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

            /** All values of the context, complete and in the order of the protocol. */
            function rows(context) {
              const shown = (value) => (value === null ? null : foreign(visible(value)));
              return [
                [t("account"), shown(context.username)],
                [t("service"), shown(context.service)],
                [t("action"), shown(context.action)],
                ...context.details.map((detail) => [shown(detail.label), shown(detail.value)]),
                [t("device"), shown(context.device)],
                [t("place"), shown(context.place)],
                [t("ip"), shown(context.ip)],
                [t("userAgent"), shown(context.userAgent)],
                [t("askedAt"), timeOf(context.createdAt)],
              ];
            }

            """#)
}
