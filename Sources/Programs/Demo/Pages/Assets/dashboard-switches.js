// The fault switches. Each has a name and two states, as the demo's server calls them.

import { text } from "./dashboard-texts.js";

const all = [
  { name: "push", text: "push", working: "up", broken: "down" },
  { name: "phone", text: "phoneOffline", working: "online", broken: "offline" },
  { name: "sms", text: "sms", working: "fast", broken: "slow" },
  { name: "relay", text: "relaySwitch", working: "up", broken: "down" },
];

export function makeSwitches(parent) {
  for (const one of all) {
    const button = document.createElement("button");
    button.type = "button";
    button.id = `switch-${one.name}`;
    button.className = "toggle";
    button.setAttribute("role", "switch");
    button.setAttribute("aria-checked", "false");
    button.addEventListener("click", async () => {
      const isBroken = button.getAttribute("aria-checked") === "true";
      const state = isBroken ? one.working : one.broken;
      button.setAttribute("aria-checked", String(!isBroken));
      try {
        const answer = await fetch("/switch", { method: "POST", body: JSON.stringify({ name: one.name, state }) });
        // A killed relay shows in the feed once it has ended.
        if (answer.ok && one.name !== "relay") showSwitches(await answer.json());
      } catch {
        button.setAttribute("aria-checked", String(isBroken));
      }
    });
    parent.append(button);
  }
  nameSwitches();
}

export function nameSwitches() {
  for (const one of all) document.getElementById(`switch-${one.name}`).textContent = text(one.text);
}

export function showSwitches(states) {
  for (const one of all) {
    const isBroken = states[one.name] === one.broken;
    document.getElementById(`switch-${one.name}`).setAttribute("aria-checked", String(isBroken));
  }
}
