// Written by dev/embed-pages from Assets/phone.js. Do not edit.
extension PageFile {
    static let phoneJS = PageFile(
        "phone.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The phone: its stored data, incoming messages, and the visible screen.

            import { listen, alertOf } from "./notifications.js";
            import { RelayLine, throughBackend } from "./calls.js";
            import { visible, visibleLines } from "./context.js";
            import { Responder } from "./device.js";
            import { button, h } from "./elements.js";
            import { Keyring } from "./keyring.js";
            import { Requests } from "./requests.js";
            import { accounts } from "./screen-accounts.js";
            import { codes } from "./screen-codes.js";
            import { enrol } from "./screen-enrol.js";
            import { messages } from "./screen-messages.js";
            import { question } from "./screen-question.js";
            import { settings } from "./screen-settings.js";
            import { language, languages, setLanguage, t } from "./texts.js";

            const screens = { accounts, codes, messages, settings, enrol, question };
            const tabs = ["accounts", "codes", "messages", "settings"];
            const mostMessages = 100;
            const part = (id) => document.getElementById(id);

            class Phone {
              phones = [];
              codes = [];
              messages = [];
              #unread = 0;
              #lines = new Map();
              #state = { offline: false, gone: false, relayLost: false };
              #front = null;
              #others = null;

              constructor(number) {
                this.number = number;
                this.requests = new Requests({
                  responder: (phone) => this.responder(phone),
                  troubled: (relayLost) => this.#tell({ relayLost }),
                  refused: (phone) => this.refuse(phone),
                });
                this.requests.addEventListener("change", () => this.#redraw());
              }

              async start() {
                this.speak();
                this.about = await (await fetch(`/about?phone=${this.number}`)).json();
                this.keyring = await Keyring.open(`twoefay-phone-${this.number}`);
                await this.keyring.keepOnlyFor(this.about.run);
                await this.#read();
                this.#others = new BroadcastChannel(`twoefay-phone-${this.number}`);
                this.#others.addEventListener("message", () => this.#read());
                addEventListener("message", ({ source, data }) => this.#isTold(source, data?.language));
                this.go("accounts", undefined, { takesFocus: false });
                document.documentElement.dataset.ready = "true";
                listen(this.number, { heard: (message, isOld) => this.#heard(message, isOld), state: (state) => this.#tell(state) });
                await this.wake();
              }

              // Requests

              /** Lists the requests at every website, as a phone does after a push. */
              wake() {
                return this.requests.wake(this.phones.filter(({ state, isRefused }) => state === "bound" && !isRefused));
              }

              /** The connection to the relay. It has a DPoP nonce, so each phone has its own. */
              line(phone) {
                if (!this.#lines.has(phone.id)) this.#lines.set(phone.id, new RelayLine(phone, throughBackend(this.number, language)));
                return this.#lines.get(phone.id);
              }

              responder(phone) {
                return new Responder(phone, this.line(phone));
              }

              // Stored data

              /** Reads the stored data. Other windows of the same phone are notified of changes. */
              async #read() {
                [this.phones, this.codes] = await Promise.all([this.keyring.all("phones"), this.keyring.all("codes")]);
                this.#redraw();
              }

              async #changed() {
                this.#others.postMessage("changed");
                await this.#read();
              }

              async save(phone) {
                await this.keyring.put("phones", phone);
                await this.#changed();
              }

              async forget(phone) {
                await this.keyring.remove("phones", phone.id);
                this.requests.closeAll(phone);
                await this.#changed();
              }

              /** Marks a phone that the relay refuses. It may only be suspended, so its key stays. */
              async refuse(phone) {
                this.requests.closeAll(phone);
                await this.save({ ...phone, isRefused: true });
              }

              /** Stores the names of website and account from a request, for the list. The relay sends them only there. */
              async remember(phone, { displayName, username }) {
                if (phone.displayName === displayName && phone.username === username) return;
                await this.save({ ...phone, displayName, username });
              }

              async addCode(code) {
                await this.keyring.put("codes", code);
                await this.#changed();
              }

              async removeCode(code) {
                await this.keyring.remove("codes", code.id);
                await this.#changed();
              }

              // Incoming messages

              #heard(message, isOld) {
                if (message.kind !== "push") {
                  this.messages = [...this.messages, message].slice(-mostMessages);
                  if (!isOld) {
                    this.#unread += 1;
                    // No notification covers a request; the number on the tab shows the message too.
                    if (this.#front?.name !== "question") this.#announce(message);
                  }
                  this.#redraw();
                  return;
                }
                if (isOld) return;
                const { title, text } = alertOf(message.payload);
                this.#ring({
                  title: visible(title), text: visible(text), challenge: message.challenge,
                  // The push only wakes the phone. The content of the request comes from the relay.
                  open: () => this.go("question", message.challenge),
                });
                this.wake();
              }

              #announce({ subject, from, text }) {
                this.#ring({ title: visible(subject ?? from), text: visibleLines(text), open: () => this.go("messages") });
              }

              readMessages() {
                this.#unread = 0;
                this.#drawTabs();
              }

              /** Shows a notification above the screen. It replaces the previous one of its kind. */
              #ring({ title, text, open, challenge = null }) {
                const act = async () => {
                  card.remove();
                  if (challenge !== null && !this.requests.find(challenge)) await this.wake();
                  open();
                };
                const card = h(
                  "section", { class: "card notification", "aria-label": t("notification"), "data-challenge": challenge },
                  h("strong", {}, title), h("p", { class: "text" }, text),
                  h("div", { class: "row" }, button(t("open"), act, "primary"), button(t("dismiss"), () => card.remove(), "quiet")));
                this.#silence(challenge !== null);
                part("notifications").prepend(card);
              }

              /** Removes the notifications of pushes, or those of messages. */
              #silence(isPush) {
                for (const one of [...part("notifications").children]) if ("challenge" in one.dataset === isPush) one.remove();
              }

              #tell(state) {
                const isBack = this.#state.offline && state.offline === false;
                Object.assign(this.#state, state);
                const { offline, gone, relayLost } = this.#state;
                const words = gone ? t("gone") : offline ? t("offline") : relayLost ? t("relayLost") : "";
                if (part("banner").textContent !== words) part("banner").textContent = words;
                part("signal").className = words === "" ? "" : "none";
                if (isBack) this.wake();
              }

              // Screens

              go(name, argument, { takesFocus = true } = {}) {
                this.#front?.leave?.();
                this.#front = { name, argument, ...screens[name](this, argument) };
                part("screen").replaceChildren(this.#front.node);
                part("screen").scrollTop = 0;
                // Remove notifications of the content that is shown now, and all of them above a request.
                if (name === "question") this.#silence(true);
                if (name === "question" || name === "messages") this.#silence(false);
                this.#drawTabs();
                if (takesFocus) part("screen").querySelector("h1")?.focus();
              }

              speak() {
                document.documentElement.lang = language();
                part("skip").textContent = t("skip");
                part("owner").textContent = t("phone", { n: this.number });
                part("tabs").setAttribute("aria-label", t("tabs"));
                document.title = `${t("phone", { n: this.number })} – Twoefay`;
                const clock = () => {
                  part("clock").textContent = new Intl.DateTimeFormat(language(), { hour: "2-digit", minute: "2-digit" }).format(new Date());
                };
                clock();
                this.ticking ??= setInterval(clock, 1000);
                this.#tell({});
                if (this.#front) this.go(this.#front.name, this.#front.argument);
              }

              /** Takes the language of the dashboard around this page. No other page may show it in a frame. */
              #isTold(source, tag) {
                if (source !== parent || parent === window || !languages.some(([one]) => one === tag)) return;
                setLanguage(tag);
                this.speak();
              }

              #redraw() {
                this.#front?.draw?.();
                this.#drawTabs();
              }

              /** Updates the tabs. The buttons are made only once, because a new button would lose the focus. */
              #drawTabs() {
                const bar = part("tabs");
                if (bar.children.length === 0) {
                  bar.append(...tabs.map((name) => h("button", { type: "button", "data-tab": name, on: { click: () => this.go(name) } })));
                }
                const asked = this.requests.open.filter((entry) => entry.question).length;
                const counts = { accounts: asked, messages: this.#unread };
                for (const tab of bar.children) {
                  const { tab: name } = tab.dataset;
                  const words = counts[name] ? `${t(name)} (${counts[name]})` : t(name);
                  if (tab.textContent !== words) tab.textContent = words;
                  if (this.#front?.name === name) tab.setAttribute("aria-current", "page");
                  else tab.removeAttribute("aria-current");
                }
              }
            }

            const number = Number(new URLSearchParams(location.search).get("phone") ?? "1");
            await new Phone(Number.isInteger(number) && number >= 1 && number <= 9 ? number : 1).start();

            """#)
}
