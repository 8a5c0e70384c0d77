// Written by dev/embed-pages from Assets/parts.css. Do not edit.
extension AppFile {
    static let partsCSS = AppFile(
        "parts.css", type: "text/css; charset=utf-8",
        text: #"""
            /* The parts of single screens: requests, numbers and codes, messages, dialogs. */

            /* A request */

            .asker {
              font-size: 1.2rem;
              font-weight: 650;
              overflow-wrap: anywhere;
            }

            .facts {
              overflow: hidden;
              border: 1px solid var(--line);
              border-radius: var(--round);
              background: var(--surface);
            }

            /* Two columns at every width: a long value stays in its column and cannot look like a label. */
            .fact {
              display: grid;
              grid-template-columns: minmax(0, 2fr) minmax(0, 3fr);
              gap: 0.75rem;
              padding: 0.45rem 1rem;
            }

            .fact + .fact { border-top: 1px solid var(--line); }
            .fact dt { color: var(--muted); overflow-wrap: anywhere; }
            .fact dd { overflow-wrap: anywhere; white-space: pre-wrap; }

            /* At the lower edge of the screen, as long as a part below was not seen. */
            .rest {
              position: sticky;
              bottom: 0;
              padding: 0.75rem 0 0.5rem;
              background: var(--ground);
              text-align: center;
            }

            /* The three answers have equal sizes, so none is easier to hit by chance. */
            .answers {
              display: grid;
              grid-auto-rows: 1fr;
              gap: 0.6rem;
            }

            .answers button { width: 100%; min-height: 3.25rem; }

            /* An entry of the own account: a phone, a factor or a login. */
            .own { flex: 1; gap: 0.15rem; }
            .own > button { align-self: start; margin-top: 0.5rem; }

            /* Numbers and codes to carry over */

            .number,
            .code,
            .otp { font-family: var(--mono); font-variant-numeric: tabular-nums; }

            .number {
              font-size: clamp(2.75rem, 2rem + 5vw, 4.25rem);
              font-weight: 650;
              line-height: 1.1;
              letter-spacing: 0.12em;
              text-align: center;
            }

            .code { font-size: 0.95rem; overflow-wrap: anywhere; }

            .code.large {
              padding: 0.9rem 1rem;
              border-radius: var(--round-small);
              background: var(--sunken);
              font-size: 1.25rem;
              text-align: center;
            }

            .list > li.otp-row {
              display: grid;
              grid-template-columns: minmax(0, 1fr) auto;
              align-items: start;
            }

            .otp-row .now { grid-area: 2 / 1 / auto / -1; }
            .otp-row > .quiet { margin: -0.5rem -0.75rem 0 0; }
            .otp-row .now button { width: 100%; }

            .otp {
              display: block;
              font-size: 2.2rem;
              font-weight: 600;
              line-height: 1.3;
              letter-spacing: 0.06em;
            }

            progress {
              flex: 1;
              height: 0.4rem;
              accent-color: var(--accent);
            }

            .message {
              display: flex;
              flex-direction: column;
              gap: 0.4rem;
              padding: 1rem;
              border: 1px solid var(--line);
              border-radius: var(--round);
              background: var(--surface);
            }

            .text {
              white-space: pre-line;
              overflow-wrap: anywhere;
            }

            summary {
              padding-block: 0.75rem;
              color: var(--accent);
              font-weight: 550;
              cursor: pointer;
            }

            .waiting > span {
              display: inline-block;
              width: 0.55rem;
              height: 0.55rem;
              margin-inline: 0.15rem;
              border-radius: 50%;
              background: var(--accent);
            }

            dialog.card {
              max-width: min(24rem, calc(100vw - 2rem));
              padding: 1.5rem;
              border: 1px solid var(--line);
              border-radius: var(--round);
              background: var(--surface);
              color: var(--text);
            }

            dialog.card[open] {
              display: flex;
              flex-direction: column;
              gap: 1rem;
            }

            dialog.card::backdrop { background: rgb(0 0 0 / 0.55); }

            @media (prefers-reduced-motion: no-preference) {
              .waiting > span { animation: waiting 1.2s ease-in-out infinite; }
              .waiting > span:nth-child(2) { animation-delay: 0.15s; }
              .waiting > span:nth-child(3) { animation-delay: 0.3s; }
            }

            @keyframes waiting {
              0%, 60%, 100% { opacity: 0.25; }
              30% { opacity: 1; }
            }

            """#)
}
