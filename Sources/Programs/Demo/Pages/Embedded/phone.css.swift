// Written by dev/embed-pages from Assets/phone.css. Do not edit.
extension PageFile {
    static let phoneCSS = PageFile(
        "phone.css", type: "text/css; charset=utf-8",
        text: #"""
            /* The phone: with a frame on a wide screen, and full screen on a real phone. Extends base.css. */

            body { height: 100dvh; }

            .phone {
              display: flex;
              flex-direction: column;
              width: 100%;
              height: 100dvh;
              background: var(--surface);
              position: relative;
              overflow: hidden;
            }

            @media (min-width: 30rem) {
              body {
                display: grid;
                place-items: center;
                padding: 1rem;
              }

              .phone {
                width: 24.5rem;
                height: min(50rem, calc(100dvh - 2rem));
                border: 0.6rem solid var(--bezel);
                border-radius: 2.6rem;
                box-shadow: var(--shadow);
              }
            }

            .status {
              display: grid;
              grid-template-columns: 1fr auto 1fr;
              align-items: center;
              padding: 0.55rem 1.4rem 0.35rem;
              font-size: 0.85rem;
              font-weight: 600;
              font-variant-numeric: tabular-nums;
            }

            /* The signal: four bars, empty without a connection */
            #signal {
              justify-self: end;
              width: 18px;
              height: 13px;
              background: linear-gradient(to right, var(--text) 3px, transparent 3px 5px) 0 100% / 5px 100%;
              clip-path: polygon(0 100%, 0 75%, 25% 75%, 25% 50%, 50% 50%, 50% 25%, 75% 25%, 75% 0, 100% 0, 100% 100%);
            }

            #signal.none { opacity: 0.25; }

            .banner {
              padding: 0.5rem 1.4rem;
              background: var(--warn-soft);
              color: var(--warn);
              font-size: 0.9rem;
              font-weight: 550;
            }

            /* Always in the page: a screen reader announces only changes of an element that was there before. */
            .banner:empty { padding: 0; }

            #screen {
              flex: 1;
              overflow-y: auto;
              padding: 0.75rem 1.25rem 1.25rem;
              min-height: 0;
            }

            #screen h1 { font-size: 1.4rem; }
            #screen .stack { gap: 0.75rem; }
            #screen .stack.tight { gap: 0.5rem; }
            #screen .stack.loose { gap: 1.75rem; }
            #screen form { gap: 0.75rem; }
            #screen .row { gap: 0 0.75rem; }
            #screen button { padding-inline: 0.75rem; }
            #screen summary { padding-block: 0.6rem; }

            #screen .request {
              width: 100%;
              justify-content: space-between;
            }

            /* Notifications above the screen: pushes at the top, messages where there is mostly room */
            #notifications {
              position: absolute;
              z-index: 5;
              inset: 2.4rem 0.6rem 4rem;
              display: grid;
              grid-template-rows: auto 1fr;
              gap: 0.5rem;
              pointer-events: none;
            }

            .notification {
              gap: 0.35rem;
              padding: 0.75rem 1rem;
              grid-row: 1;
              pointer-events: auto;
              border-color: var(--edge);
              box-shadow: 0 2px 4px rgb(0 0 0 / 0.15), 0 12px 48px rgb(0 0 0 / 0.35);
            }

            .notification:not([data-challenge]) {
              grid-row: 2;
              align-self: end;
            }

            /* Only the beginning of the text; the button opens all of it. */
            .notification .text {
              display: -webkit-box;
              -webkit-box-orient: vertical;
              -webkit-line-clamp: 3;
              overflow: hidden;
              white-space: normal;
              line-height: 1.4;
            }

            /* It can get the focus, for scrolling with the keyboard. */
            #screen:focus-visible { outline-offset: -3px; }

            .text {
              white-space: pre-line;
              overflow-wrap: anywhere;
            }

            .facts .code { display: inline-block; }

            /* Always two columns, however narrow the phone is: a long value stays in its column and cannot look like a label. */
            #screen .facts {
              grid-template-columns: fit-content(40%) minmax(0, 1fr);
              gap: 0.15rem 1rem;
            }

            #screen .facts dt {
              margin: 0;
              overflow-wrap: anywhere;
            }

            @media (prefers-reduced-motion: no-preference) {
              .notification { animation: ring 0.25s ease-out; }
            }

            @keyframes ring {
              from { transform: translateY(-1.5rem); opacity: 0; }
            }

            .tabs {
              display: flex;
              border-top: 1px solid var(--line);
              background: var(--surface);
              padding: 0.25rem 0.35rem 0.45rem;
            }

            .tabs button {
              flex: 1 1 auto;
              min-height: 2.9rem;
              padding: 0.25rem 0.15rem;
              border: 0;
              background: transparent;
              color: var(--muted);
              font-size: 0.72rem;
            }

            .tabs button:hover { background: var(--sunken); color: var(--text); }

            .tabs button[aria-current="page"] {
              color: var(--accent);
              box-shadow: inset 0 3px 0 var(--accent);
              border-radius: 0;
            }

            .asker {
              font-size: 1.15rem;
              font-weight: 600;
            }

            /* Approve, reject and fraud have equal sizes, so none is easier to hit by chance. */
            .answers {
              display: grid;
              gap: 0.6rem;
            }

            .answers button {
              width: 100%;
              min-height: 3rem;
            }

            /* The code in the middle of its row, away from the button that removes it. */
            .list > .otp-row {
              display: grid;
              grid-template-columns: 1fr auto;
              align-items: start;
              gap: 0.25rem 1rem;
            }

            .otp-row .now {
              grid-column: 1 / -1;
              grid-row: 2;
            }

            .otp {
              display: block;
              font-family: var(--mono);
              font-size: 2.4rem;
              font-weight: 600;
              line-height: 1.3;
              font-variant-numeric: tabular-nums;
              letter-spacing: 0.06em;
            }

            progress {
              flex: 1;
              width: 6rem;
              height: 0.4rem;
              accent-color: var(--accent);
            }

            .message {
              display: flex;
              flex-direction: column;
              gap: 0.3rem;
              padding: 0.8rem 1rem;
              border-radius: var(--round);
              background: var(--sunken);
            }

            .message h2 { font-size: 1rem; }

            dialog.card {
              max-width: min(22rem, calc(100vw - 2rem));
              color: var(--text);
            }

            dialog.card::backdrop { background: rgb(0 0 0 / 0.55); }

            """#)
}
