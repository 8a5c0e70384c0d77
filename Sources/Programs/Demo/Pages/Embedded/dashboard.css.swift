// Written by dev/embed-pages from Assets/dashboard.css. Do not edit.
extension PageFile {
    static let dashboardCSS = PageFile(
        "dashboard.css", type: "text/css; charset=utf-8",
        text: #"""
            /* Website, phones and messages: in one view if there is room, else below each other. */

            .bar { padding-block: 0.4rem; }
            .bar .row { flex: 1 1 14rem; gap: 0.2rem 0.75rem; }
            .bar h1 { font-size: 1.15rem; }
            .lead { color: var(--muted); }

            .dashboard {
              display: grid;
              grid-template-columns: minmax(0, 1fr);
              grid-template-areas: "guide" "website" "phones" "switches" "activity";
              gap: 0.75rem;
              max-width: 120rem;
              margin-inline: auto;
              padding: 0.75rem clamp(0.5rem, 2vw, 1.5rem);
            }

            .guide { grid-area: guide; }
            .website { grid-area: website; }
            .phones { grid-area: phones; }
            .switches { grid-area: switches; }
            .activity { grid-area: activity; }

            /* Always in the page: a screen reader announces only changes of an element that was there before. */
            .gone { border-radius: 0; }
            .gone:empty { padding: 0; border: 0; }

            .dashboard > .card {
              gap: 0.6rem;
              padding: 0.75rem 1rem;
            }

            .dashboard h2 { font-size: 1.05rem; }

            [data-language][aria-pressed="true"] { background: var(--accent-soft); color: var(--accent-strong); }

            /* First steps */

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

            /* Website and phones */

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

            /* Fault switches */

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

            .activity .toggle[aria-checked="true"]::before {
              border-color: var(--accent);
              background: radial-gradient(circle at calc(100% - 0.5rem) 50%, var(--accent) 0.32rem, transparent 0.36rem);
            }

            @media (max-width: 30rem) {
              .switches button { width: 100%; justify-content: flex-start; }
            }

            @media (min-width: 62rem) {
              .dashboard {
                grid-template-columns: minmax(0, 1fr) 24rem;
                grid-template-areas: "guide guide" "website phones" "switches switches" "activity activity";
              }

              .website iframe { flex: 1; }
            }

            /* On a wide screen, the messages are between website and phones, and everything fits the window. */
            @media (min-width: 76rem) {
              .dashboard {
                grid-template-columns: minmax(0, 1fr) minmax(0, 1.15fr) clamp(23.5rem, 25vw, 25rem);
                grid-template-rows: auto minmax(0, 1fr) auto;
                grid-template-areas: "guide guide phones" "website activity phones" "switches switches phones";
                height: calc(100vh - 3.7rem);
                min-height: 44rem;
              }

              .phones [role="tabpanel"]:not([hidden]) { display: flex; flex: 1; min-height: 0; }
              .phones iframe { height: 100%; }
              .website iframe { height: 0; }
              #log { flex: 1; min-height: 0; overflow-y: auto; }

              .switches button,
              .activity button { min-height: 2.25rem; padding: 0.25rem 0.6rem; font-size: 0.9rem; }
            }

            """#)
}
