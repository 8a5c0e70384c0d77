// Written by dev/embed-pages from Assets/seen.js. Do not edit.
extension AppFile {
    static let seenJS = AppFile(
        "seen.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // Whether the person had all parts of a request on the screen. A decision is sent only then.

            /**
             * Counts the parts that are still unseen. `parts` are elements, each of which must have been fully
             * in view once; a part that is taller than the view must have had both of its ends in view.
             */
            export class Seen {
              #unseen = new Map();
              #observer = null;

              constructor(parts, changed, Observer = globalThis.IntersectionObserver) {
                Object.assign(this, { changed, Observer });
                for (const part of parts) this.#unseen.set(part, { top: false, bottom: false });
              }

              /** Begins to look, once the parts are in the page. `view` says what counts as the screen. */
              start(view) {
                this.#observer = new this.Observer((entries) => this.#take(entries), { ...view, threshold: [0, 0.25, 0.5, 0.75, 0.99, 1] });
                for (const part of this.#unseen.keys()) this.#observer.observe(part);
              }

              get isWhole() {
                return this.#unseen.size === 0;
              }

              /** The first part that was not in view yet. */
              get next() {
                return this.#unseen.keys().next().value ?? null;
              }

              stop() {
                this.#observer?.disconnect();
              }

              #take(entries) {
                const before = this.#unseen.size;
                for (const { target, isIntersecting, boundingClientRect: box, intersectionRect: shown } of entries) {
                  const state = this.#unseen.get(target);
                  if (!state || !isIntersecting || box.height === 0) continue;
                  // Rounded to whole pixels, since both are fractions.
                  if (shown.top - box.top < 1) state.top = true;
                  if (box.bottom - shown.bottom < 1) state.bottom = true;
                  if (!state.top || !state.bottom) continue;
                  this.#unseen.delete(target);
                  this.#observer.unobserve(target);
                }
                if (this.#unseen.size !== before) this.changed();
              }
            }

            """#)
}
