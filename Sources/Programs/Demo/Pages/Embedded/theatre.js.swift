// Written by dev/embed-pages from Assets/theatre.js. Do not edit.
extension PageFile {
    static let theatreJS = PageFile(
        "theatre.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The theatre: keeps asking what has been said, and shows it.

            import { guide, showGuide } from "./theatre-guide.js";
            import { makeSwitches, nameSwitches, showSwitches } from "./theatre-switches.js";
            import { Order, shown } from "./theatre-talk.js";
            import { choose, current, word } from "./theatre-words.js";

            const list = document.getElementById("messages");
            const log = document.getElementById("log");
            const state = document.getElementById("relay-state");
            // As many as the demo itself keeps.
            const most = 2000;
            const order = new Order();
            let said = [];
            let last = 0;
            let relay;

            function showRelay() {
              const names = { up: "relayUp", down: "relayDown", starting: "relayStarting", gone: "relayGone" };
              state.textContent = relay ? word(names[relay]) : "…";
              state.className = `badge ${relay === "up" ? "good" : relay === "starting" ? "warn" : "bad"}`;
              const words = relay === "gone" ? word("gone") : "";
              const place = document.getElementById("gone");
              if (place.textContent !== words) place.textContent = words;
            }

            function translate() {
              document.documentElement.lang = current();
              for (const one of document.querySelectorAll("[data-word]")) one.textContent = word(one.dataset.word);
              for (const one of document.querySelectorAll("[data-word-title]")) one.title = word(one.dataset.wordTitle);
              for (const one of document.querySelectorAll("[data-word-label]")) one.ariaLabel = word(one.dataset.wordLabel);
              for (const one of document.querySelectorAll("[data-language]")) {
                one.setAttribute("aria-pressed", String(one.dataset.language === current()));
              }
              for (const n of [1, 2]) {
                document.getElementById(`tab-${n}`).textContent = word("phoneNumber", { n });
                document.querySelector(`#panel-${n} iframe`).title = word("phoneNumber", { n });
              }
              nameSwitches();
              showGuide();
              showRelay();
              const { scrollTop } = log;
              list.replaceChildren(...said.map(shown));
              log.scrollTop = scrollTop;
            }

            function add(messages) {
              // Beside website and phone the messages scroll by themselves, below them with the page.
              const isBeside = getComputedStyle(log).overflowY === "auto";
              const box = isBeside ? log : document.scrollingElement;
              const wasAtEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - 80;
              const isNew = said.length > 0;
              for (const message of messages) order.mark(message);
              said.push(...messages);
              const items = messages.map(shown);
              for (const item of items) item.classList.toggle("is-new", isNew);
              list.append(...items);
              while (said.length > most) {
                said.shift();
                list.firstElementChild.remove();
              }
              document.getElementById("nothing").hidden = said.length > 0;
              guide(messages);
              // Who reads the end goes on reading the end; nobody else is moved.
              if (wasAtEnd && (isBeside || box.scrollTop > 0)) box.scrollTop = box.scrollHeight;
            }

            async function listen() {
              let pause = 500;
              for (;;) {
                try {
                  const answer = await fetch(`/feed?after=${last}`);
                  if (!answer.ok) throw new Error(String(answer.status));
                  const told = await answer.json();
                  last = told.last;
                  relay = told.switches.relay;
                  showSwitches(told.switches);
                  showRelay();
                  if (told.messages.length > 0) add(told.messages);
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
              // The second phone is switched on when somebody wants to see it, and stays on.
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
            // Website and phones have their own words, and may be asked to say them in the same language. A page that is being loaded does
            // not hear it, and one with something on it that would be lost does not heed it: so the next page is asked once more.
            const untold = new Set();
            const tell = (frame) => frame.contentWindow.postMessage({ language: current() }, new URL(frame.src).origin);
            for (const button of document.querySelectorAll("[data-language]")) {
              button.addEventListener("click", () => {
                choose(button.dataset.language);
                translate();
                for (const frame of document.querySelectorAll("iframe[src]")) {
                  untold.add(frame);
                  tell(frame);
                }
              });
            }
            for (const frame of document.querySelectorAll("iframe")) {
              frame.addEventListener("load", () => { if (untold.delete(frame)) tell(frame); });
            }
            document.getElementById("routine").addEventListener("click", (event) => {
              const isOn = event.currentTarget.getAttribute("aria-checked") !== "true";
              event.currentTarget.setAttribute("aria-checked", String(isOn));
              list.classList.toggle("with-routine", isOn);
            });
            document.getElementById("clear").addEventListener("click", () => {
              said = [];
              list.replaceChildren();
              const nothing = document.getElementById("nothing");
              nothing.dataset.word = "cleared";
              nothing.textContent = word("cleared");
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
