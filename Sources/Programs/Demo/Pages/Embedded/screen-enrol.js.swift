// Written by dev/embed-pages from Assets/screen-enrol.js. Do not edit.
extension PageFile {
    static let screenEnrolJS = PageFile(
        "screen-enrol.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // Binds this phone at a website: the user agrees, perhaps approves it on another phone, and sees the result.

            import { CallFailure } from "./calls.js";
            import { button, facts, field, fill, h, heading } from "./elements.js";
            import { visible } from "./context.js";
            import { Enroller, beginEnrolment, isFor } from "./device.js";
            import { pause } from "./requests.js";
            import { t } from "./texts.js";

            /** The lifetime of an activation code in milliseconds. The wait for an approval ends with it. */
            const codeLife = 600_000;

            /** Starts with a new activation, or continues with a phone that was not bound when the page was closed. */
            export function enrol(app, { activation, phone: begun }) {
              const leaving = new AbortController();
              const node = h("div", { class: "stack" });
              const website = visible((activation ?? begun).website);
              const show = (title, ...parts) => {
                const head = heading(title);
                fill(node, head, ...parts);
                if (node.isConnected) head.focus();
              };
              const home = () => app.go("accounts");
              const end = (words) => show(t("notBound"), h("p", { class: "notice bad", role: "status" }, words), button(t("done"), home, "primary"));

              const ask = () => {
                const name = field(t("name"), h("input", { maxlength: "64", autocomplete: "off", value: t("phone", { n: app.number }) }), t("nameHint"));
                show(
                  t("bind"), h("p", {}, t("bindText", { website })),
                  facts([[t("website"), website], [t("relay"), visible(activation.relay)]]),
                  h(
                    "form", { on: { submit: (event) => { event.preventDefault(); begin(name.input.value.trim()); } } }, name.node,
                    h("button", { class: "primary" }, t("bindIt")), button(t("cancel"), home, "quiet")));
              };

              const begin = async (name) => {
                const again = app.phones.find((phone) => isFor(phone, activation));
                const phone = again ?? (await beginEnrolment(activation, { name, pushToken: app.about.push_token }));
                // Store the phone before the first request, because the relay may bind it at once.
                await app.save(phone);
                await bind(phone);
              };

              const bind = async (phone) => {
                const trouble = h("p", { role: "status", class: "muted" });
                show(t("binding"), trouble);
                const enroller = new Enroller(phone, app.line(phone));
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
                    const over = await refused(error, enroller, trouble);
                    if (over) return over;
                  }
                  if (Date.now() - phone.madeAt > codeLife) {
                    await app.forget(phone);
                    return end(t("enrolOver"));
                  }
                  await pause(2, leaving.signal);
                }
              };

              /** Handles a refused attempt; true if there is nothing more to try. */
              const refused = async (error, enroller, trouble) => {
                const { phone } = enroller;
                if (error.status === 409) {
                  end(t("enrolFull"));
                  return true;
                }
                if (error.mayPass) {
                  trouble.textContent = error.status === 429 ? t("slow", { seconds: error.retryAfter ?? 2 }) : t("stillTrying");
                  await pause(error.retryAfter ?? 0, leaving.signal);
                  return false;
                }
                // An earlier attempt, whose answer was lost, may have bound the phone.
                let bound;
                try {
                  bound = await enroller.boundUnheard();
                } catch (unsure) {
                  if (!(unsure instanceof CallFailure)) throw unsure;
                  trouble.textContent = t("stillTrying");
                  return false;
                }
                if (bound) {
                  await done(bound, null);
                  return true;
                }
                await app.forget(phone);
                end(error.status === 401 ? t("enrolRefused") : t("failed", { why: visible(error.message) }));
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
                show(
                  t("isBound"), h("p", { class: "notice good" }, t("boundText", { website })),
                  revocationCode === null ? null : h(
                    "div", { class: "stack tight" }, h("p", { class: "label" }, t("revocation")),
                    h("p", { class: "code", id: "revocation-code" }, revocationCode), h("p", { class: "hint" }, t("revocationHint"))),
                  button(t("done"), home, "primary"));
                return true;
              };

              if (begun) bind(begun);
              else ask();
              return { node, leave: () => leaving.abort() };
            }

            """#)
}
