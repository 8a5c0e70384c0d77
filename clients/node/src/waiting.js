/** The page that waits for the phone. It needs no other resource, and no script. */

/** Escapes a value for a text or an attribute of HTML. */
function escape(value) {
  const names = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  return String(value).replace(/[&<>"']/g, (character) => names[character]);
}

/** Returns the page. A website may put a function with the same argument in its place. */
export function waitingPage({ number, tokenName, token, message, ended, nonce, stateURL, codes }) {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Confirm your login</title>
${ended ? "" : '<noscript><meta http-equiv="refresh" content="5"></noscript>'}
<style nonce="${escape(nonce)}">
body { font: 1.1rem/1.5 system-ui, sans-serif; max-width: 26rem; margin: 4rem auto;
  padding: 0 1rem; }
.number { font-size: 4rem; font-weight: 700; letter-spacing: .1em; margin: 1rem 0; }
input, button { font: inherit; padding: .5rem 1rem; }
</style>
</head>
<body>
<main>
<h1>Confirm your login</h1>
${message ? `<p role="alert">${escape(message)}</p>` : ""}
${ended ? "" : form({ number, tokenName, token, stateURL, codes }) + script(nonce)}
</main>
</body>
</html>
`;
}

function form({ number, tokenName, token, stateURL, codes }) {
  const asked = number
    ? `<p>Enter this number on your phone:</p><p class="number">${escape(number)}</p>`
    : "<p>Answer on your phone.</p>";
  const code = "<p><label>Or enter a code: "
    + '<input name="code" autocomplete="one-time-code"></label></p>';
  return `${asked}
<form method="post" id="finish" data-state="${escape(stateURL)}">
<input type="hidden" name="${escape(tokenName)}" value="${escape(token)}">
${codes ? code : ""}
<button>Continue</button>
</form>
`;
}

/** Asks how the login stands, and sends the form once. */
function script(nonce) {
  return `<script nonce="${escape(nonce)}">
(async () => {
  const form = document.getElementById("finish");
  let isSent = false;
  form.addEventListener("submit", (event) => {
    if (isSent) event.preventDefault();
    isSent = true;
  });
  addEventListener("pageshow", (event) => event.persisted && location.reload());
  while (!isSent) {
    await new Promise((go) => setTimeout(go, 1500));
    try {
      const answer = await fetch(form.dataset.state, { cache: "no-store" });
      if (!(await answer.json()).ended || isSent) continue;
    } catch { continue; /* the next round asks again */ }
    isSent = true;
    if (form.code) form.code.value = ""; // the answer was given elsewhere: half a code is none
    form.submit();
  }
})();
</script>`;
}
