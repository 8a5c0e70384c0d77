// Written by dev/embed-pages from Assets/shop.css. Do not edit.
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
              padding: 0.2rem 0.6rem;
            }

            /* A thumb's height where there are thumbs, though they are only words. */
            .bar a {
              display: inline-flex;
              align-items: center;
              min-height: 2.75rem;
            }

            @media (pointer: fine) {
              .bar a,
              .bar button { min-height: 2.1rem; }
            }

            .bar nav { gap: 0 1.1rem; }
            .bar a[aria-current] { color: inherit; text-decoration: none; font-weight: 600; }

            main { flex: 1; }
            main.page { max-width: 38rem; }

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

            main > form,
            .card > form { max-width: 24rem; }

            .card ol:not(.codes) {
              display: flex;
              flex-direction: column;
              gap: 0.4rem;
              padding-left: 1.4rem;
            }

            /* So that nobody loses count when they write them down. */
            .codes {
              grid-template-columns: repeat(auto-fill, minmax(14rem, 1fr));
              counter-reset: code;
            }

            .codes li { counter-increment: code; }

            .codes li::before {
              content: counter(code) ".";
              display: inline-block;
              width: 2rem;
              color: var(--muted);
              font-variant-numeric: tabular-nums;
            }

            /* What is to be typed stands in one line. */
            p > .code {
              display: block;
              margin-top: 0.3rem;
              font-size: 0.85rem;
            }

            /* A name and its button beside each other. */
            form.rename {
              flex-direction: row;
              gap: 0.5rem;
              min-width: 0;
            }

            form.rename input {
              width: 11rem;
              min-width: 0;
            }

            details > * + * { margin-top: 0.75rem; }

            summary {
              padding-block: 0.6rem;
              color: var(--accent);
            }

            /* In a low frame the page matters more. */
            @media (max-height: 30rem) {
              footer { padding-block: 0.2rem; }
            }

            @media (max-width: 28rem) {
              .bar {
                position: relative;
                padding-block: 0.25rem;
              }

              /* Beside the name, and not on a line of its own. */
              .bar nav form {
                position: absolute;
                top: 0.25rem;
                right: 0.5rem;
              }

              /* The ways on are below each other, and of one width. */
              main > .row {
                flex-direction: column;
                align-items: stretch;
              }

              main > .row form { display: flex; }
            }

            """#)
}
