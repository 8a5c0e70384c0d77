// Written by dev/embed-pages from Assets/dashboard.js. Do not edit.
extension PageFile {
    static let dashboardJS = PageFile(
        "dashboard.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The dashboard: polls the feed of messages and shows them.

            import { guide, showGuide } from "./dashboard-guide.js";
            import { MessageMarker, listItem } from "./dashboard-messages.js";
            import { makeSwitches, nameSwitches, showSwitches } from "./dashboard-switches.js";
            import { language, setLanguage, text } from "./dashboard-texts.js";

            const list = document.getElementById("messages");
            const log = document.getElementById("log");
            const state = document.getElementById("relay-state");
            // The largest number of messages shown. The demo's server keeps as many.
            const most = 2000;
            const marker = new MessageMarker();
            let entries = [];
            let last = 0;
            let relay;

            function showRelay() {
              const names = { up: "relayUp", down: "relayDown", starting: "relayStarting", gone: "relayGone" };
              state.textContent = relay ? text(names[relay]) : "…";
              state.className = `badge ${relay === "up" ? "good" : relay === "starting" ? "warn" : "bad"}`;
              const notice = relay === "gone" ? text("gone") : "";
              const element = document.getElementById("gone");
              if (element.textContent !== notice) element.textContent = notice;
            }

            function translate() {
              document.documentElement.lang = language();
              for (const one of document.querySelectorAll("[data-text]")) one.textContent = text(one.dataset.text);
              for (const one of document.querySelectorAll("[data-text-title]")) one.title = text(one.dataset.textTitle);
              for (const one of document.querySelectorAll("[data-text-label]")) one.ariaLabel = text(one.dataset.textLabel);
              for (const one of document.querySelectorAll("[data-language]")) {
                one.setAttribute("aria-pressed", String(one.dataset.language === language()));
              }
              for (const n of [1, 2]) {
                document.getElementById(`tab-${n}`).textContent = text("phoneNumber", { n });
                document.querySelector(`#panel-${n} iframe`).title = text("phoneNumber", { n });
              }
              nameSwitches();
              showGuide();
              showRelay();
              const { scrollTop } = log;
              list.replaceChildren(...entries.map(listItem));
              log.scrollTop = scrollTop;
            }

            function add(messages) {
              // Beside website and phones the list scrolls separately, below them with the page.
              const isBeside = getComputedStyle(log).overflowY === "auto";
              const box = isBeside ? log : document.scrollingElement;
              const wasAtEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - 80;
              const isNew = entries.length > 0;
              for (const message of messages) marker.mark(message);
              entries.push(...messages);
              const items = messages.map(listItem);
              for (const item of items) item.classList.toggle("is-new", isNew);
              list.append(...items);
              while (entries.length > most) {
                entries.shift();
                list.firstElementChild.remove();
              }
              document.getElementById("nothing").hidden = entries.length > 0;
              guide(messages);
              // Scroll on only if the end was visible before.
              if (wasAtEnd && (isBeside || box.scrollTop > 0)) box.scrollTop = box.scrollHeight;
            }

            async function listen() {
              let pause = 500;
              for (;;) {
                try {
                  const answer = await fetch(`/feed?after=${last}`);
                  if (!answer.ok) throw new Error(String(answer.status));
                  const update = await answer.json();
                  last = update.last;
                  relay = update.switches.relay;
                  showSwitches(update.switches);
                  showRelay();
                  if (update.messages.length > 0) add(update.messages);
                  pause = 500;
                } catch {
                  relay = "gone";
                  showRelay();
                  await new Promise((resolve) => setTimeout(resolve, pause));
                  pause = Math.min(pause * 2, 8000);
                }
              }
            }

            function select(number) {
              for (const n of [1, 2]) {
                const tab = document.getElementById(`tab-${n}`);
                tab.setAttribute("aria-selected", String(n === number));
                tab.tabIndex = n === number ? 0 : -1;
                document.getElementById(`panel-${n}`).hidden = n !== number;
              }
              const frame = document.querySelector(`#panel-${number} iframe`);
              // The second phone is loaded when it is first shown.
              if (frame.dataset.src && !frame.src) frame.src = frame.dataset.src;
            }

            for (const n of [1, 2]) {
              const tab = document.getElementById(`tab-${n}`);
              tab.addEventListener("click", () => select(n));
              tab.addEventListener("keydown", (event) => {
                if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
                select(3 - n);
                document.getElementById(`tab-${3 - n}`).focus();
              });
            }
            // The pages in the frames have a language of their own and are asked to use this one. A loading page does not get the message, and
            // a page whose input would be lost ignores it. So the next page in the frame is asked again.
            const pending = new Set();
            const sendLanguage = (frame) => frame.contentWindow.postMessage({ language: language() }, new URL(frame.src).origin);
            for (const button of document.querySelectorAll("[data-language]")) {
              button.addEventListener("click", () => {
                setLanguage(button.dataset.language);
                translate();
                for (const frame of document.querySelectorAll("iframe[src]")) {
                  pending.add(frame);
                  sendLanguage(frame);
                }
              });
            }
            for (const frame of document.querySelectorAll("iframe")) {
              frame.addEventListener("load", () => { if (pending.delete(frame)) sendLanguage(frame); });
            }
            document.getElementById("routine").addEventListener("click", (event) => {
              const isOn = event.currentTarget.getAttribute("aria-checked") !== "true";
              event.currentTarget.setAttribute("aria-checked", String(isOn));
              list.classList.toggle("with-routine", isOn);
            });
            document.getElementById("clear").addEventListener("click", () => {
              entries = [];
              list.replaceChildren();
              const nothing = document.getElementById("nothing");
              nothing.dataset.text = "cleared";
              nothing.textContent = text("cleared");
              nothing.hidden = false;
            });
            document.getElementById("operator").addEventListener("click", () => {
              fetch("/switch", { method: "POST", body: JSON.stringify({ name: "operator", state: "up" }) });
            });
            makeSwitches(document.getElementById("switches"));
            translate();
            listen();

            """#)
}
