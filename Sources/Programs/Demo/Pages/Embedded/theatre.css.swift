// Written by dev/embed-pages from Assets/theatre.css. Do not edit.
extension PageFile {
    static let theatreCSS = PageFile(
        "theatre.css", type: "text/css; charset=utf-8",
        text: #"""
            /* Website, phone, and what is said between them, in four lanes: all in one view where there is room, else below each other. */

            .bar { padding-block: 0.4rem; }
            .bar .row { flex: 1 1 14rem; gap: 0.2rem 0.75rem; }
            .bar h1 { font-size: 1.15rem; }
            .lead { color: var(--muted); }

            .stage {
              display: grid;
              grid-template-columns: minmax(0, 1fr);
              grid-template-areas: "guide" "website" "phones" "switches" "talk";
              gap: 0.75rem;
              max-width: 120rem;
              margin-inline: auto;
              padding: 0.75rem clamp(0.5rem, 2vw, 1.5rem);
            }

            .guide { grid-area: guide; }
            .website { grid-area: website; }
            .phones { grid-area: phones; }
            .switches { grid-area: switches; }
            .talk { grid-area: talk; }

            /* There all the time, or a screen reader would not hear what comes into it. */
            .gone { border-radius: 0; }
            .gone:empty { padding: 0; border: 0; }

            .stage > .card {
              gap: 0.6rem;
              padding: 0.75rem 1rem;
            }

            .stage h2 { font-size: 1.05rem; }

            [data-language][aria-pressed="true"] { background: var(--accent-soft); color: var(--accent-strong); }

            /* What to do first */

            .guide ol {
              display: grid;
              grid-template-columns: repeat(auto-fit, minmax(14rem, 1fr));
              gap: 0.6rem 1.5rem;
              padding: 0;
              list-style: none;
              counter-reset: step;
            }

            .guide li {
              position: relative;
              padding-left: 2.5rem;
              counter-increment: step;
            }

            .guide strong { display: block; }
            .guide .hint { display: block; line-height: 1.4; }

            .guide li::before,
            .switches h2::before {
              content: counter(step);
              display: inline-grid;
              place-items: center;
              width: 1.8rem;
              height: 1.8rem;
              border: 2px solid var(--edge);
              border-radius: 50%;
              font-weight: 650;
              line-height: 1;
            }

            .guide li::before {
              position: absolute;
              left: 0;
              top: 0.1rem;
            }

            .switches h2::before {
              content: "4";
              margin-right: 0.7rem;
            }

            .guide [aria-current]::before,
            .switches.is-next h2::before {
              border-color: var(--accent);
              background: var(--accent);
              color: var(--on-accent);
            }

            .guide [aria-current] strong { color: var(--accent); }

            .guide .is-done::before {
              content: "✓";
              border-color: var(--good);
              color: var(--good);
            }

            /* Website and phone */

            .screen iframe {
              display: block;
              width: 100%;
              height: min(44rem, 85vh);
              border: 1px solid var(--line);
              border-radius: var(--round-small);
              background: var(--ground);
            }

            .phones iframe {
              max-width: 25rem;
              margin-inline: auto;
              border: 0.5rem solid var(--bezel);
              border-radius: 2rem;
            }

            .screen a {
              padding-block: 0.7rem;
              font-size: 0.9rem;
            }

            .tabs {
              width: 100%;
              max-width: 25rem;
              gap: 0.4rem;
              align-self: center;
            }

            .tabs button { flex: 1; }

            .tabs button[aria-selected="true"] {
              background: var(--accent);
              border-color: var(--accent);
              color: var(--on-accent);
            }

            /* What can be broken */

            #switches { gap: 0.5rem; }

            .toggle::before {
              content: "";
              flex: none;
              width: 2.1rem;
              height: 1.2rem;
              border: 2px solid var(--edge);
              border-radius: 1rem;
              background: radial-gradient(circle at 0.5rem 50%, var(--edge) 0.32rem, transparent 0.36rem);
            }

            .toggle[aria-checked="true"]::before {
              border-color: var(--bad);
              background: radial-gradient(circle at calc(100% - 0.5rem) 50%, var(--bad) 0.32rem, transparent 0.36rem);
            }

            .talk .toggle[aria-checked="true"]::before {
              border-color: var(--accent);
              background: radial-gradient(circle at calc(100% - 0.5rem) 50%, var(--accent) 0.32rem, transparent 0.36rem);
            }

            @media (max-width: 30rem) {
              .switches button { width: 100%; justify-content: flex-start; }
            }

            @media (min-width: 62rem) {
              .stage {
                grid-template-columns: minmax(0, 1fr) 24rem;
                grid-template-areas: "guide guide" "website phones" "switches switches" "talk talk";
              }

              .website iframe { flex: 1; }
            }

            /* Where the width is a desk's, what is said goes between those who say it, and everything fits the window. */
            @media (min-width: 76rem) {
              .stage {
                grid-template-columns: minmax(0, 1fr) minmax(0, 1.15fr) clamp(23.5rem, 25vw, 25rem);
                grid-template-rows: auto minmax(0, 1fr) auto;
                grid-template-areas: "guide guide phones" "website talk phones" "switches switches phones";
                height: calc(100vh - 3.7rem);
                min-height: 44rem;
              }

              .phones [role="tabpanel"]:not([hidden]) { display: flex; flex: 1; min-height: 0; }
              .phones iframe { height: 100%; }
              .website iframe { height: 0; }
              #log { flex: 1; min-height: 0; overflow-y: auto; }

              .switches button,
              .talk button { min-height: 2.25rem; padding: 0.25rem 0.6rem; font-size: 0.9rem; }
            }

            """#)
}
