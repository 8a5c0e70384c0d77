// Written by dev/embed-pages from Assets/theatre-talk.js. Do not edit.
extension PageFile {
    static let theatreTalkJS = PageFile(
        "theatre-talk.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // One message as it is shown: an arrow from lane to lane, what it is for, who and when, and its body behind a click.

            import { about, isAnswer, isBad } from "./theatre-about.js";
            import { word, words } from "./theatre-words.js";

            const lanes = { "website": 0, "relay": 1, "push service": 2, "mail server": 2, "SMS gateway": 2, "phone": 3 };

            function element(name, className, text) {
              const made = document.createElement(name);
              if (className) made.className = className;
              if (text !== undefined) made.textContent = text;
              return made;
            }

            /** As the clock on the wall says, to the millisecond. */
            function moment(text) {
              const at = new Date(text);
              const two = (number) => String(number).padStart(2, "0");
              const fraction = String(at.getMilliseconds()).padStart(3, "0");
              const time = element("time", "", `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${fraction}`);
              time.dateTime = text;
              return time;
            }

            function decoded(text) {
              const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
              return JSON.parse(new TextDecoder().decode(bytes));
            }

            // What stands encoded in a body: statements that are signed, and what a phone shows.
            function opened(value, name = "") {
              if (Array.isArray(value)) return value.flatMap((one) => opened(one, name));
              if (value && typeof value === "object") return Object.entries(value).flatMap(([key, one]) => opened(one, key));
              if (typeof value !== "string" || !value.startsWith("ey")) return [];
              try {
                const parts = value.split(".");
                if (parts.length === 3) return [{ title: word("signed", { name }), value: decoded(parts[1]) }];
                if (parts.length === 1) return [{ title: word("shown", { name }), value: decoded(value) }];
              } catch {
                // It only looked like it.
              }
              return [];
            }

            function note(entry) {
              const item = element("li", "note");
              item.append(moment(entry.at), ` ${words().notes[entry.note] ?? entry.note}`);
              if (entry.text) item.append(element("pre", "", entry.text));
              return item;
            }

            function arrow(entry) {
              const [from, to] = [lanes[entry.from], lanes[entry.to]];
              const way = `first-${Math.min(from, to)} span-${Math.abs(to - from)} ${from < to ? "rightwards" : "leftwards"}`;
              const drawn = element("span", `flow ${way}${isAnswer(entry) ? " is-answer" : ""}`);
              drawn.ariaHidden = "true";
              return drawn;
            }

            export function shown(entry) {
              if (entry.note) return note(entry);
              const item = element("li", "way");
              item.classList.toggle("is-routine", Boolean(entry.routine || entry.isRepeated));
              item.classList.toggle("is-bad", isBad(entry));
              item.classList.toggle("is-later", Boolean(entry.isLater));
              const said = element("details", "said");
              const summary = element("summary");
              const name = (party) => words().parties[party] + (party === "phone" && entry.phone ? ` ${entry.phone}` : "");
              const fact = element("span", "fact", `${name(entry.from)} → ${name(entry.to)}`);
              // A path's long names are below; what has neither a path nor a status has no head to speak of.
              const head = entry.head.replace(/[0-9a-f]{12,}…?/g, (long) => `${long.slice(0, 6)}…`);
              if (isAnswer(entry) || head.includes(" ")) fact.append(" ", element("span", "head", head));
              fact.append(" ", moment(entry.at));
              summary.append(element("span", "about", about(entry) ?? head), fact);
              said.append(summary);
              const text = [entry.head, ...entry.fields, JSON.stringify(entry.body, null, 2)].join("\n");
              said.append(element("pre", "", text));
              for (const one of opened(entry.body)) {
                said.append(element("h3", "", one.title), element("pre", "", JSON.stringify(one.value, null, 2)));
              }
              for (const pre of said.querySelectorAll("pre")) pre.tabIndex = 0;
              item.append(arrow(entry), said);
              return item;
            }

            /** Marks what is said again and again, and what comes after a pause: the two things that are not in a message itself. */
            export class Order {
              #told = new Set();
              #last = 0;

              mark(entry) {
                if (entry.note || entry.routine) return;
                const { from, to, head, body } = entry;
                if (isAnswer(entry) && (body.pending?.length || body.challenge)) {
                  const key = JSON.stringify([from, to, head, body.login, body.code, body.challenge, body.pending, entry.phone]);
                  entry.isRepeated = this.#told.has(key);
                  this.#told.add(key);
                  if (entry.isRepeated) return;
                }
                const at = Date.parse(entry.at);
                entry.isLater = this.#last > 0 && at - this.#last > 2000;
                this.#last = at;
              }
            }

            """#)
}
