// The start of the app: checks the browser, and shows the first screen, or the page of a link to the
// own account.

import { App } from "./app.js";
import { missing } from "./capabilities.js";
import { fill, h, heading, note } from "./elements.js";
import { productEnvironment } from "./environment.js";
import { firstFragment, takeFragment } from "./fragment.js";
import { readAccountLink } from "./own-account.js";
import { linked } from "./screen-linked.js";
import { language, loadLanguage, suitable, t } from "./texts.js";

// The page that opened this one, if any, gets no hold on it.
window.opener = null;

const stop = (words) =>
  fill(document.getElementById("screen"), h("div", { class: "stack" }, heading("Twoefay"), note(words, "bad", "alert")));

async function start() {
  await loadLanguage(suitable(navigator.languages ?? [navigator.language]));
  document.documentElement.lang = language();
  // The policy of the page forbids frames; a browser that ignores it must not show the app either.
  if (window.top !== window) return stop(t("inFrame"));
  const account = readAccountLink(firstFragment);
  if (account) return showAccount(account.link);
  const lack = await missing();
  if (lack) return stop(t(lack));
  const app = new App(await productEnvironment(language));
  await app.start(firstFragment);
  // A link that is opened while the app is open changes the fragment alone.
  addEventListener("hashchange", () => app.openFragment(takeFragment()));
  document.documentElement.dataset.ready = "true";
}

/**
 * Shows the account of a link from a mail, without the app: it needs no phone and stores nothing,
 * so it works in every browser.
 */
async function showAccount(link) {
  const again = () => location.reload();
  const { node } = linked({ environment: await productEnvironment(language), shell: { go: again } }, link);
  for (const id of ["skip", "tabs", "banner"]) document.getElementById(id).remove();
  document.getElementById("screen").replaceChildren(node);
  node.querySelector("h1").focus();
  // The start of the page knows what to do with another link.
  addEventListener("hashchange", again);
  document.documentElement.dataset.ready = "true";
}

start().catch((error) => stop(t("cannotStart", { why: error.message })));
