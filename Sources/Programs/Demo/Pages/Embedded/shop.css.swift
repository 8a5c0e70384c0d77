// Written by dev/embed-pages from Assets/shop.css. Do not edit.
extension PageFile {
    static let shopCSS = PageFile(
        "shop.css", type: "text/css; charset=utf-8",
        text: #"""
            /* The style of the sample website. Extends base.css. */

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

            /* Links as high as a thumb on touch screens */
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

            /* Numbered, so that nobody loses count while writing the codes down. */
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

            /* Text to type, on one line */
            p > .code {
              display: block;
              margin-top: 0.3rem;
              font-size: 0.85rem;
            }

            /* A name beside its button */
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

            /* Less space around the page in a low frame */
            @media (max-height: 30rem) {
              footer { padding-block: 0.2rem; }
            }

            @media (max-width: 28rem) {
              .bar {
                position: relative;
                padding-block: 0.25rem;
              }

              /* Beside the name, not on its own line */
              .bar nav form {
                position: absolute;
                top: 0.25rem;
                right: 0.5rem;
              }

              /* Buttons below each other, with equal widths */
              main > .row {
                flex-direction: column;
                align-items: stretch;
              }

              main > .row form { display: flex; }
            }

            """#)
}
