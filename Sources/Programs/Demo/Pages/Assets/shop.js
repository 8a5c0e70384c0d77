// Comfort for the sample website's pages; each of them works without it.
"use strict";

let isSent = false;
addEventListener("submit", () => { isSent = true; });

// A page that waits asks the server, which holds the question until there is something to say.
async function wait(path) {
  const state = document.getElementById("state");
  for (;;) {
    let pause = 2;
    try {
      const answer = await fetch(path);
      const told = await answer.json();
      // A form on its way brings the next page, perhaps with another session: nothing may take its place.
      if (isSent) return;
      if (told.over) {
        location.replace(told.go);
        return;
      }
      // Said again only if it is something else: screen readers read what is written here.
      if (told.say && state.textContent !== told.say) state.textContent = told.say;
      pause = told.pause ?? 0.2;
    } catch {
      // The website is away for a moment.
    }
    await new Promise((resolve) => setTimeout(resolve, pause * 1000));
  }
}

// The dashboard around this page asks for its own language here too. No other page may show this one in a frame.
addEventListener("message", ({ source, data }) => {
  if (source !== parent || parent === window) return;
  // Nothing that is being sent, was typed, or is shown only once may be lost by the change.
  const isTyped = [...document.querySelectorAll("input")].some((input) => input.value !== input.defaultValue);
  if (isSent || isTyped || document.getElementById("codes")) return;
  const chosen = [...document.getElementsByName("language")].find((button) => button.value === data?.language);
  if (chosen?.ariaPressed === "false") chosen.click();
});

const awaited = document.getElementById("main").dataset.await;
if (awaited) wait(awaited);

// What somebody has said yes to on the phone goes on by itself.
for (const form of document.querySelectorAll("form.at-once")) form.requestSubmit();

for (const button of document.querySelectorAll("button.copy")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(source.innerText.trim());
      button.textContent = button.dataset.done;
    } catch {
      // Not allowed in this frame: it is marked, to be copied by hand.
      getSelection().selectAllChildren(source);
    }
  });
}
