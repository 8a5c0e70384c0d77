// Written by dev/embed-pages from Assets/screen-enrol.js. Do not edit.
extension AppFile {
    static let screenEnrolJS = AppFile(
        "screen-enrol.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // Binds this phone at a website: the person agrees, perhaps approves it on another phone, and sees
            // the result.

            import { CallFailure } from "./calls.js";
            import { visible } from "./context.js";
            import { button, facts, field, fill, foreign, form, h, heading, note } from "./elements.js";
            import { Enroller, beginEnrolment, isFor } from "./enrolment.js";
            import { canCheckOwner, makePasskey } from "./passkey.js";
            import { pause } from "./requests.js";
            import { t } from "./texts.js";

            /** The lifetime of an activation code in milliseconds. The wait for an approval ends with it. */
            const codeLife = 600_000;

            /** Starts with a new activation, or continues with a phone that was not bound yet. */
            export function enrol(app, { activation, phone: begun }) {
              const leaving = new AbortController();
              const node = h("div", { class: "stack" });
              const website = visible((activation ?? begun).website);
              const show = (title, ...parts) => {
                const head = heading(title);
                fill(node, head, ...parts);
                if (node.isConnected) head.focus();
              };
              const home = () => app.shell.go("home");
              const end = (words) => show(t("notBound"), note(words, "bad", "status"), button(t("done"), home, "primary"));

              const known = () => app.phones.find((phone) => isFor(phone, activation));

              const ask = async () => {
                const hasOwnerCheck = await canCheckOwner();
                const name = field(t("phoneName"), h("input", { maxlength: "64", autocomplete: "off" }), t("phoneNameHint"));
                const check = h("input", { type: "checkbox", checked: true, id: "owner-check" });
                const told = h("p", { role: "alert", class: "error" });
                const submit = async () => {
                  told.textContent = "";
                  let passkey = null;
                  // A phone that was made for this activation before has its passkey, or none.
                  if (hasOwnerCheck && check.checked && !known()) {
                    try {
                      passkey = await makePasskey(`${activation.website} – ${new URL(activation.at).host}`);
                    } catch {
                      told.textContent = t("passkeyFailed");
                      return;
                    }
                  }
                  await begin(name.input.value.trim(), passkey);
                };
                show(
                  t("bindTitle"), h("p", {}, t("bindText", { website })),
                  facts([[t("website"), foreign(website)], [t("relay"), foreign(visible(activation.relay))]]),
                  form(
                    submit, name.node,
                    hasOwnerCheck
                      ? h("label", { class: "choice", for: "owner-check" }, check, h("span", {}, t("ownerCheck")))
                      : note(t("noOwnerCheck")),
                    told, h("button", { class: "primary" }, t("bindIt")), button(t("cancel"), home, "quiet")));
              };

              const begin = async (name, passkey) => {
                // The browser may say no; the settings then show it.
                // A browser may ask the person, and wait for the answer. The phone does not.
                navigator.storage?.persist?.().catch(() => false);
                const phone = known() ?? (await beginEnrolment(activation, { name, passkey, app: app.environment.origin }));
                // Store the phone before the first request, because the relay may bind it at once.
                await app.save(phone);
                await bind(phone);
              };

              const bind = async (phone) => {
                const trouble = h("p", { role: "status", class: "muted" });
                show(t("binding"), trouble);
                const enroller = new Enroller(phone, app.line(phone), app.environment.platform);
                let number;
                while (!leaving.signal.aborted) {
                  try {
                    const outcome = await enroller.attempt();
                    trouble.textContent = "";
                    if (outcome.login === "verified") return await done(outcome.phone, outcome.revocationCode);
                    if (number !== outcome.number) wait(phone, outcome.number, trouble);
                    number = outcome.number;
                  } catch (error) {
                    if (!(error instanceof CallFailure)) throw error;
                    if (await refused(error, enroller, trouble)) return undefined;
                  }
                  if (Date.now() - phone.madeAt > codeLife) return await drop(enroller, t("enrolOver"), trouble);
                  await pause(2, leaving.signal);
                }
                return undefined;
              };

              /** Handles a refused attempt; true if there is nothing more to try. */
              const refused = async (error, enroller, trouble) => {
                if (error.status === 409) {
                  end(t("enrolFull"));
                  return true;
                }
                if (error.mayPass) {
                  trouble.textContent = error.status === 429 ? t("slow", { seconds: error.retryAfter ?? 2 }) : t("stillTrying");
                  await pause(error.retryAfter ?? 0, leaving.signal);
                  return false;
                }
                const words = error.status === 401 ? t("enrolRefused")
                  : error.status === 403 ? t("enrolNotTaken", { website }) : t("failed", { why: visible(error.message) });
                return drop(enroller, words, trouble);
              };

              /**
               * Removes a key that was refused, unless an earlier attempt, whose answer was lost, has bound it.
               */
              const drop = async (enroller, words, trouble) => {
                try {
                  const bound = await enroller.boundUnheard();
                  if (bound) return await done(bound, null);
                } catch (unsure) {
                  if (!(unsure instanceof CallFailure)) throw unsure;
                  trouble.textContent = t("stillTrying");
                  return false;
                }
                await app.forget(enroller.phone);
                end(words);
                return true;
              };

              const wait = (phone, number, trouble) =>
                show(
                  t("waits"), h("p", {}, t("waitsText")), number ? h("p", { class: "number", id: "enrol-number" }, number) : null,
                  facts([[t("key"), h("span", { class: "code", id: "enrol-key" }, phone.id)]]),
                  h("p", { class: "waiting centred", "aria-hidden": "true" }, h("span"), h("span"), h("span")), trouble,
                  button(t("back"), home, "quiet"));

              const done = async (phone, revocationCode) => {
                await app.save(phone);
                app.follow();
                app.greet(phone);
                const next = app.pushes.permission === "default" ? () => notify() : home;
                show(
                  t("isBound"), note(t("boundText", { website }), "good"),
                  revocationCode === null ? null : h(
                    "section", { class: "stack tight" }, h("h2", {}, t("revocation")),
                    h("p", { class: "code large", id: "revocation-code" }, revocationCode), h("p", { class: "hint" }, t("revocationHint"))),
                  button(t(revocationCode === null ? "done" : "writtenDown"), next, "primary"));
                return true;
              };

              const notify = () => {
                const allow = async () => {
                  try {
                    await app.pushes.allow();
                  } finally {
                    home();
                  }
                };
                show(
                  t("notifyTitle"), h("p", {}, t("notifyText")), button(t("notifyAllow"), allow, "primary"),
                  button(t("notNow"), home, "quiet"));
              };

              if (begun) bind(begun);
              else ask();
              return { node, leave: () => leaving.abort() };
            }

            """#)
}
