// Written by dev/embed-pages from Assets/main.js. Do not edit.
extension AppFile {
    static let mainJS = AppFile(
        "main.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The start of the app: takes the link out of the address bar, checks the browser, and shows the
            // first screen.

            import { App } from "./app.js";
            import { missing } from "./capabilities.js";
            import { fill, h, heading, note } from "./elements.js";
            import { productEnvironment } from "./environment.js";
            import { language, loadLanguage, suitable, t } from "./texts.js";

            /** Takes the fragment out of the address bar: it may have the code of an activation. */
            function takeFragment() {
              const fragment = location.hash.slice(1);
              if (fragment !== "") history.replaceState(history.state, "", location.pathname);
              return fragment;
            }

            const first = takeFragment();
            // The page that opened this one, if any, gets no hold on it.
            window.opener = null;

            const stop = (words) =>
              fill(document.getElementById("screen"), h("div", { class: "stack" }, heading("Twoefay"), note(words, "bad", "alert")));

            async function start() {
              await loadLanguage(suitable(navigator.languages ?? [navigator.language]));
              document.documentElement.lang = language();
              // The policy of the page forbids frames; a browser that ignores it must not show the app either.
              if (window.top !== window) return stop(t("inFrame"));
              const lack = await missing();
              if (lack) return stop(t(lack));
              const app = new App(await productEnvironment(language));
              await app.start(first);
              // A link that is opened while the app is open changes the fragment alone.
              addEventListener("hashchange", () => app.openFragment(takeFragment()));
              document.documentElement.dataset.ready = "true";
            }

            start().catch((error) => stop(t("cannotStart", { why: error.message })));

            """#)
}
