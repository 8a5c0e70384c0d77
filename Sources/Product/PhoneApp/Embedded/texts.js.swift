// Written by dev/embed-pages from Assets/texts.js. Do not edit.
extension AppFile {
    static let textsJS = AppFile(
        "texts.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The texts of the app. Each language has one file with the same keys.

            export const languages = [["en", "English"], ["de", "Deutsch"]];

            let chosen = "en";
            let table = {};

            export const language = () => chosen;

            /** The first of these languages that the app has. */
            export const suitable = (tags) =>
              tags.map((tag) => tag.slice(0, 2).toLowerCase()).find((tag) => languages.some(([one]) => one === tag)) ?? "en";

            export async function loadLanguage(tag) {
              const response = await fetch(`/phone/texts.${tag}.json`);
              table = await response.json();
              chosen = tag;
            }

            /** The text of that name, with `{value}` replaced by its value. */
            export const t = (name, values = {}) =>
              (table[name] ?? name).replace(/\{(\w+)\}/g, (whole, value) => (value in values ? isolated(String(values[value])) : whole));

            /** The words for a value of the relay, such as the text `reason-expired`; null if there are none. */
            export const word = (kind, value) => table[`${kind}-${value}`] ?? null;

            /** Marks that keep a text of others from changing the direction of the sentence around it. */
            const isolated = (text) => (/[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/.test(text) ? `\u2068${text}\u2069` : text);

            const shown = (options) => (moment) => new Intl.DateTimeFormat(chosen, options).format(new Date(moment));
            export const timeOf = shown({ hour: "2-digit", minute: "2-digit", second: "2-digit" });
            export const dayOf = shown({ dateStyle: "medium", timeStyle: "short" });

            """#)
}
