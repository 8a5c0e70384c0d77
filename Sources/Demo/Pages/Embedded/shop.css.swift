// Written by deploy/embed-pages from Assets/shop.css. Do not edit.
extension PageFile {
    static let shopCSS = PageFile(
        "shop.css", type: "text/css; charset=utf-8",
        text: #"""
            /* The sample website's own look, on top of base.css. */

            body {
              display: flex;
              flex-direction: column;
            }

            .bar .name::before {
              content: "";
              display: inline-block;
              width: 0.7em;
              height: 0.7em;
              margin-right: 0.5em;
              border-radius: 0 100% 100% 100%;
              background: var(--accent);
            }

            .bar form { display: inline-flex; }

            .bar button {
              min-height: 2.25rem;
              padding: 0.2rem 0.6rem;
            }

            main { flex: 1; }

            footer {
              padding: 1rem clamp(1rem, 4vw, 1.5rem);
              border-top: 1px solid var(--line);
            }

            footer .row {
              flex-direction: row;
              justify-content: center;
              gap: 0.25rem;
            }

            footer [aria-pressed="true"] {
              color: var(--text);
              text-decoration: underline;
              text-underline-offset: 0.3em;
            }

            .card > form { max-width: 24rem; }

            .card ol:not(.codes) {
              display: flex;
              flex-direction: column;
              gap: 0.4rem;
              padding-left: 1.4rem;
            }

            /* A name and its button beside each other. */
            form.rename {
              flex-direction: row;
              flex-wrap: wrap;
              gap: 0.5rem;
            }

            form.rename input { width: 11rem; }

            details > * + * { margin-top: 0.75rem; }

            summary { color: var(--accent); }

            """#)
}
