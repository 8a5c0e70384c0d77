// Written by dev/embed-pages from Assets/shop.js. Do not edit.
extension PageFile {
    static let shopJS = PageFile(
        "shop.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // Improves the sample website's pages. Each of them also works without this script.
            "use strict";

            let isSent = false;
            addEventListener("submit", () => { isSent = true; });

            // A waiting page polls the server, which holds the request until something changes.
            async function wait(path) {
              const state = document.getElementById("state");
              for (;;) {
                let pause = 2;
                try {
                  const answer = await fetch(path);
                  const told = await answer.json();
                  // A form is being sent and leads to the next page, perhaps with another session. Do not load another page.
                  if (isSent) return;
                  if (told.over) {
                    location.replace(told.go);
                    return;
                  }
                  // Write only changes: screen readers read this text aloud.
                  if (told.say && state.textContent !== told.say) state.textContent = told.say;
                  pause = told.pause ?? 0.2;
                } catch {
                  // The website cannot be reached at the moment.
                }
                await new Promise((resolve) => setTimeout(resolve, pause * 1000));
              }
            }

            // The dashboard around this page asks for its own language here too. No other page may show this one in a frame.
            addEventListener("message", ({ source, data }) => {
              if (source !== parent || parent === window) return;
              // The change must not lose a form that is being sent or was typed into, or a text that is shown only once.
              const isTyped = [...document.querySelectorAll("input")].some((input) => input.value !== input.defaultValue);
              if (isSent || isTyped || document.getElementById("codes")) return;
              const chosen = [...document.getElementsByName("language")].find((button) => button.value === data?.language);
              if (chosen?.ariaPressed === "false") chosen.click();
            });

            const awaited = document.getElementById("main").dataset.await;
            if (awaited) wait(awaited);

            // After an approval on the phone, the page continues by itself.
            for (const form of document.querySelectorAll("form.at-once")) form.requestSubmit();

            for (const button of document.querySelectorAll("button.copy")) {
              button.hidden = false;
              button.addEventListener("click", async () => {
                const source = document.getElementById(button.dataset.copy);
                try {
                  await navigator.clipboard.writeText(source.innerText.trim());
                  button.textContent = button.dataset.done;
                } catch {
                  // Not allowed in this frame: select the text, so that the user can copy it.
                  getSelection().selectAllChildren(source);
                }
              });
            }

            """#)
}
