// Written by dev/embed-pages from Assets/theatre-switches.js. Do not edit.
extension PageFile {
    static let theatreSwitchesJS = PageFile(
        "theatre-switches.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // What a visitor may break: each switch has a name, and two states as the demo calls them.

            import { word } from "./theatre-words.js";

            const all = [
              { name: "push", word: "push", right: "up", broken: "down" },
              { name: "phone", word: "phoneOffline", right: "online", broken: "offline" },
              { name: "sms", word: "sms", right: "fast", broken: "slow" },
              { name: "relay", word: "relaySwitch", right: "up", broken: "down" },
            ];

            export function makeSwitches(place) {
              for (const one of all) {
                const button = document.createElement("button");
                button.type = "button";
                button.id = `switch-${one.name}`;
                button.className = "toggle";
                button.setAttribute("role", "switch");
                button.setAttribute("aria-checked", "false");
                button.addEventListener("click", async () => {
                  const isBroken = button.getAttribute("aria-checked") === "true";
                  const state = isBroken ? one.right : one.broken;
                  button.setAttribute("aria-checked", String(!isBroken));
                  try {
                    const answer = await fetch("/switch", { method: "POST", body: JSON.stringify({ name: one.name, state }) });
                    // A relay that was killed is told of by the feed, when it is over.
                    if (answer.ok && one.name !== "relay") showSwitches(await answer.json());
                  } catch {
                    button.setAttribute("aria-checked", String(isBroken));
                  }
                });
                place.append(button);
              }
              nameSwitches();
            }

            export function nameSwitches() {
              for (const one of all) document.getElementById(`switch-${one.name}`).textContent = word(one.word);
            }

            export function showSwitches(states) {
              for (const one of all) {
                const isBroken = states[one.name] === one.broken;
                document.getElementById(`switch-${one.name}`).setAttribute("aria-checked", String(isBroken));
              }
            }

            """#)
}
