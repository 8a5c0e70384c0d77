// Written by dev/embed-pages from Assets/app.css. Do not edit.
extension AppFile {
    static let appCSS = AppFile(
        "app.css", type: "text/css; charset=utf-8",
        text: #"""
            /* The screens of the app: one column with the tabs below it; on a tablet the tabs are beside it. */

            html,
            body { height: 100%; }

            .app {
              display: grid;
              grid-template-rows: auto minmax(0, 1fr) auto;
              height: 100dvh;
            }

            #screen {
              overflow-y: auto;
              overscroll-behavior: contain;
              padding: 1.25rem max(1.25rem, env(safe-area-inset-right)) 0 max(1.25rem, env(safe-area-inset-left));
            }

            /* No padding: a sticky element would stay above it, and the screen would show below the element. */
            #screen::after {
              content: "";
              display: block;
              height: 2rem;
            }

            #screen > * {
              max-width: 34rem;
              margin-inline: auto;
            }

            .stack {
              display: flex;
              flex-direction: column;
              gap: 1rem;
            }

            /* An empty place for a later message takes no room, and stays where screen readers watch it. */
            .stack > [role="status"]:empty,
            form > [role="status"]:empty { position: absolute; }

            .stack.tight { gap: 0.6rem; }
            .stack.loose { gap: 2rem; }

            .row {
              display: flex;
              flex-wrap: wrap;
              align-items: center;
              gap: 0.25rem 0.75rem;
            }

            .row.apart { justify-content: space-between; }

            .skip {
              position: absolute;
              inset-inline-start: 0.5rem;
              top: -5rem;
              z-index: 10;
            }

            .skip:focus { top: 0.5rem; }

            .banner {
              display: flex;
              flex-wrap: wrap;
              align-items: center;
              justify-content: center;
              gap: 0 0.75rem;
              padding: 0.35rem 1.25rem;
              background: var(--warn-soft);
              color: var(--warn);
              font-size: 0.95rem;
              font-weight: 550;
            }

            /* Always in the page: a screen reader announces only changes of an element that was there before. */
            .banner:empty { padding: 0; }
            .banner span { padding-block: 0.4rem; }

            /* Tabs */

            .tabs {
              display: flex;
              border-top: 1px solid var(--line);
              background: var(--surface);
              padding: 0.25rem 0.25rem calc(0.25rem + env(safe-area-inset-bottom));
            }

            .tabs button {
              position: relative;
              flex: 1 1 auto;
              flex-direction: column;
              gap: 0.1rem;
              min-width: 0;
              padding: 0.35rem 0.1rem;
              border: 0;
              background: transparent;
              color: var(--muted);
              font-size: 0.75rem;
            }

            .tabs button span {
              max-width: 100%;
              overflow-wrap: anywhere;
            }

            .tabs button:hover { background: var(--sunken); color: var(--text); }
            .tabs button[aria-current="page"] { color: var(--accent); }
            .tabs button[aria-current="page"] .icon { background: var(--accent-soft); }
            .tabs button.counted { color: var(--bad); font-weight: 700; }

            .icon {
              width: 3.2rem;
              height: 1.7rem;
              padding: 0.15rem;
              border-radius: 99px;
              fill: none;
              stroke: currentcolor;
              stroke-width: 1.8;
              stroke-linecap: round;
              stroke-linejoin: round;
            }

            /* The longest names of the tabs stay whole on the narrowest phones. */
            @media (max-width: 24rem) {
              .tabs button { font-size: 0.7rem; }
              .icon { width: 2.6rem; }
            }

            /* A request has the whole screen: nothing else can be pressed by mistake. */
            [data-screen="question"] .tabs,
            [data-screen="enrol"] .tabs { display: none; }

            /* Lists and entries */

            .list {
              display: flex;
              flex-direction: column;
              gap: 0.5rem;
              padding: 0;
              list-style: none;
            }

            .list > li:not(:has(> .entry)) {
              display: flex;
              align-items: center;
              justify-content: space-between;
              gap: 0.5rem 1rem;
              padding: 0.75rem 1rem;
              border: 1px solid var(--line);
              border-radius: var(--round);
              background: var(--surface);
            }

            .list > li > div { min-width: 0; overflow-wrap: anywhere; }

            .entry,
            .request {
              display: grid;
              grid-template-columns: minmax(0, 1fr) auto;
              justify-content: stretch;
              justify-items: start;
              gap: 0.1rem 1rem;
              width: 100%;
              padding: 0.8rem 1rem;
              border-color: var(--line);
              border-radius: var(--round);
              text-align: start;
              overflow-wrap: anywhere;
            }

            .entry .name,
            .request .name { font-weight: 650; }
            .entry .muted,
            .request .muted { grid-column: 1; font-weight: 400; }

            .entry .badge,
            .request .go {
              grid-column: 2;
              grid-row: 1 / 3;
              align-self: center;
            }

            .request {
              border: 2px solid var(--accent);
              background: var(--accent-soft);
              padding: 1.1rem;
            }

            .request:hover { background: var(--accent-soft); border-color: var(--accent-strong); }
            .request .name { font-size: 1.15rem; }

            .request .go {
              padding: 0.5rem 1rem;
              border-radius: var(--round-small);
              background: var(--accent);
              color: var(--on-accent);
            }

            .steps {
              display: flex;
              flex-direction: column;
              gap: 0.75rem;
              padding-inline-start: 1.5rem;
            }

            .camera {
              width: 100%;
              max-height: 60dvh;
              border-radius: var(--round);
              background: #000000;
              object-fit: cover;
            }

            @media (min-width: 48rem) {
              .app {
                grid-template: auto minmax(0, 1fr) / auto minmax(0, 1fr);
              }

              .banner { grid-column: 1 / -1; }
              #screen { padding-top: 2.5rem; }
              #screen::after { height: 2.5rem; }
              #screen { grid-area: 2 / 2; }

              .tabs {
                grid-area: 2 / 1;
                flex-direction: column;
                width: 8.5rem;
                padding: 1.5rem 0.75rem;
                gap: 0.75rem;
                border-top: 0;
                border-inline-end: 1px solid var(--line);
              }

              .tabs button { flex: none; padding-block: 0.75rem; font-size: 0.85rem; }
            }

            """#)
}
