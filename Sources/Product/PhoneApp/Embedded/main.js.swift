// Written by dev/embed-pages from Assets/main.js. Do not edit.
extension AppFile {
    static let mainJS = AppFile(
        "main.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The start of the app: takes the link out of the address bar, checks the browser, and shows the
            // first screen.

            import { App } from "./app.js";
            import { missing } from "./capabilities.js";
            import { fill, h } from "./elements.js";
            import { productEnvironment } from "./environment.js";
            import { language, loadLanguage, suitable, t } from "./texts.js";

            /** Takes the fragment before anything else: it may have the code of an activation. */
            const fragment = location.hash.slice(1);
            if (fragment !== "") history.replaceState(null, "", location.pathname);
            // The page that opened this one, if any, gets no hold on it.
            window.opener = null;

            const stop = (words) =>
              fill(document.getElementById("screen"), h("div", { class: "stack" }, h("h1", { tabindex: "-1" }, "Twoefay"), h("p", { class: "notice bad", role: "alert" }, words)));

            async function start() {
              await loadLanguage(suitable(navigator.languages ?? [navigator.language]));
              document.documentElement.lang = language();
              // The policy of the page forbids frames; a browser that ignores it must not show the app either.
              if (window.top !== window) return stop(t("inFrame"));
              const lack = await missing();
              if (lack) return stop(t(lack));
              await new App(await productEnvironment(language)).start(fragment);
              document.documentElement.dataset.ready = "true";
            }

            start().catch((error) => stop(t("cannotStart", { why: error.message })));

            """#)
}
