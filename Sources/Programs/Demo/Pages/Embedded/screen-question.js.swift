// Written by dev/embed-pages from Assets/screen-question.js. Do not edit.
extension PageFile {
    static let screenQuestionJS = PageFile(
        "screen-question.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The screen of a request: its context, the number to enter, and three answers of equal size.

            import { CallFailure } from "./calls.js";
            import { button, confirm, facts, field, fill, h, heading } from "./elements.js";
            import { visible } from "./context.js";
            import { deliver } from "./requests.js";
            import { t, timeOf } from "./texts.js";

            export function question(app, challenge) {
              const leaving = new AbortController();
              const node = h("div", { class: "stack" });
              const home = () => app.go("accounts");
              const show = (title, kind, words) => {
                leaving.abort();
                const head = heading(title);
                fill(
                  node, head, words ? h("p", { class: `notice ${kind}`, role: "status" }, words) : null, button(t("done"), home, "primary"));
                if (node.isConnected) head.focus();
              };
              const entry = app.requests.find(challenge);
              if (!entry) {
                show(t("over"), "", t("overText"));
                return { node };
              }
              const { context } = entry.question;
              const website = visible(context.displayName);
              const isEnrolment = context.action === "enrol";
              const hasKey = context.details.some(({ label }) => label === "key");

              const number = context.numberDigits === 0 ? null : field(
                t("number"),
                h("input", { class: "digits", inputmode: "numeric", autocomplete: "off", maxlength: String(context.numberDigits), name: "number" }));
              const told = h("p", { role: "status" });
              const buttons = h("div", { class: "answers" });
              const left = h("p", { class: "muted small", role: "timer", "aria-live": "off" });
              let isSending = false;

              const answer = async (word) => {
                if (isSending) return;
                const decision = { word };
                if (word === "approve" && number) {
                  decision.number = number.input.value.trim();
                  if (!new RegExp(`^[0-9]{${context.numberDigits}}$`).test(decision.number)) {
                    number.complain(t("numberWrong", { digits: context.numberDigits }));
                    return;
                  }
                  number.complain(null);
                }
                if (word === "fraud" && !(await confirm({
                  title: t("fraudTitle"), text: t("fraudText", { website }), yes: t("fraudYes"), no: t("back"),
                }))) return;
                isSending = true;
                for (const one of buttons.children) one.disabled = true;
                told.className = "muted";
                told.textContent = t("sending");
                try {
                  const outcome = await deliver(app.responder(entry.phone), entry, decision, (error) => {
                    told.textContent = error.status === 429 ? t("slow", { seconds: error.retryAfter ?? 2 }) : t("sendingAgain");
                  });
                  app.requests.close(challenge);
                  ended(word, outcome);
                } catch (error) {
                  if (!(error instanceof CallFailure)) throw error;
                  isSending = false;
                  for (const one of buttons.children) one.disabled = false;
                  told.className = "notice bad";
                  told.textContent = t("failed", { why: visible(error.message) });
                }
              };

              const ended = (word, outcome) => {
                if (outcome === null) show(t("over"), "warn", t("overText"));
                else if (outcome.isLate) show(t("decided"), "warn", t("decidedText", { login: t(outcome.login) }));
                else if (word === "fraud") show(t("frozen"), "bad", t("frozenText", { website }));
                else if (word === "deny") show(t("denied"), "warn", t("deniedText", { website }));
                else if (outcome.login === "success") show(t("approved"), "good", t("approvedText", { website }));
                else show(t("wrongNumber"), "bad", t("wrongNumberText"));
              };

              buttons.append(
                button(t("approve"), () => answer("approve"), "primary"), button(t("deny"), () => answer("deny")),
                button(t("fraud"), () => answer("fraud"), "danger"));
              const form = h(
                "form", { on: { submit: (event) => { event.preventDefault(); answer("approve"); } } }, number?.node ?? null, buttons, told);
              const title = heading(t(isEnrolment ? "approvePhone" : context.action ? "agree" : "isThisYou"));
              fill(
                node, title,
                h(
                  "div", { class: "row apart" },
                  h("p", { class: "asker" }, t("asks", { website }), website === context.website ? null : h("span", { class: "muted small" }, ` (${context.website})`)),
                  left),
                entry.question.demands?.length
                  ? h("p", { class: "notice warn" }, t("demands", { website, demands: visible(entry.question.demands.join(", ")) })) : null,
                isEnrolment ? h("p", { class: "notice warn" }, t(hasKey ? "enrolKey" : "enrolHint", { website })) : null,
                facts(rows(context)), form);

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
              leaving.signal.addEventListener("abort", () => clearInterval(ticking));
              app.requests.watch(entry.phone, leaving.signal);
              app.remember(entry.phone, context);
              return { node, leave: () => leaving.abort() };
            }

            /** All values of the context, complete and in the order of the protocol. */
            function rows(context) {
              const shown = (value) => (value === null ? null : visible(value));
              return [
                [t("account"), shown(context.username)],
                [t("service"), shown(context.service)],
                [t("action"), shown(context.action)],
                ...context.details.map((detail) => [visible(detail.label), visible(detail.value)]),
                [t("device"), shown(context.device)],
                [t("place"), shown(context.place)],
                [t("ip"), shown(context.ip)],
                [t("userAgent"), shown(context.userAgent)],
                [t("askedAt"), timeOf(context.createdAt)],
              ];
            }

            """#)
}
