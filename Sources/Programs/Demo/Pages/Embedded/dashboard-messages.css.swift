// Written by dev/embed-pages from Assets/dashboard-messages.css. Do not edit.
extension PageFile {
    static let dashboardMessagesCSS = PageFile(
        "dashboard-messages.css", type: "text/css; charset=utf-8",
        text: #"""
            /* The messages: each has an arrow between two lanes, an explanation, and its body in a disclosure. */

            .activity {
              --lane: 2.6rem;
            }

            .activity .toggle { border-color: transparent; background: none; }
            .activity .toggle:hover { background: var(--sunken); }

            .lanes {
              display: grid;
              grid-template-columns: repeat(4, var(--lane));
              align-items: end;
              padding-bottom: 0.3rem;
              border-bottom: 1px solid var(--line);
              font-size: 0.75rem;
              font-weight: 600;
              line-height: 1.2;
              text-align: center;
            }

            /* The names are wider than their lanes, so every other one is higher. */
            .lanes span { margin-inline: -1rem; }
            .lanes span:nth-child(odd) { padding-bottom: 1.2em; }

            #messages {
              display: flex;
              flex-direction: column;
              padding: 0;
              list-style: none;
            }

            #messages:not(.with-routine) .is-routine { display: none; }

            .entry {
              display: grid;
              grid-template-columns: calc(4 * var(--lane)) minmax(0, 1fr);
            }

            /* One vertical line for each lane, continuous over all messages. */
            .flow {
              position: relative;
              background: repeating-linear-gradient(
                to right, transparent 0 calc(var(--lane) / 2 - 1px), var(--line) calc(var(--lane) / 2 - 1px) calc(var(--lane) / 2),
                transparent calc(var(--lane) / 2) var(--lane));
            }

            .flow::before,
            .flow::after {
              content: "";
              position: absolute;
              top: 1.05rem;
              color: var(--accent);
            }

            .flow::before {
              left: calc((var(--first) + 0.5) * var(--lane));
              width: calc(var(--span) * var(--lane) - 1px);
              border-top: 2px solid;
            }

            .flow.is-answer::before { border-top-style: dashed; }

            .flow::after {
              width: 0.5rem;
              height: 0.5rem;
              margin: -0.19rem 0 0 0;
              border: solid;
              border-width: 2px 2px 0 0;
            }

            .flow.rightwards::after {
              left: calc((var(--first) + var(--span) + 0.5) * var(--lane) - 0.65rem);
              transform: rotate(45deg);
            }

            .flow.leftwards::after {
              left: calc((var(--first) + 0.5) * var(--lane) + 0.05rem);
              transform: rotate(-135deg);
            }

            .first-0 { --first: 0; }
            .first-1 { --first: 1; }
            .first-2 { --first: 2; }
            .span-1 { --span: 1; }
            .span-2 { --span: 2; }
            .span-3 { --span: 3; }

            .is-bad .flow::before,
            .is-bad .flow::after { color: var(--bad); }

            .details {
              position: relative;
              min-width: 0;
              padding: 0.25rem 0.3rem 0.3rem;
              border-radius: var(--round-small);
            }

            .details summary {
              display: block;
              font-weight: 400;
              line-height: 1.4;
              border-radius: 4px;
            }

            .details:not([open]):hover { background: var(--sunken); }
            .details .explanation { display: block; padding-right: 1.2rem; font-size: 0.95rem; }
            .is-bad .explanation { color: var(--bad); }

            .details .fact {
              color: var(--muted);
              font-size: 0.8rem;
              font-variant-numeric: tabular-nums;
              overflow-wrap: anywhere;
            }

            .details .head { font-family: var(--mono); color: var(--text); }

            .details summary::after {
              content: "+";
              position: absolute;
              top: 0.25rem;
              right: 0.4rem;
              color: var(--muted);
              font-family: var(--mono);
            }

            .details[open] summary::after { content: "−"; }

            .details pre {
              margin: 0.5rem 0 0;
              padding: 0.6rem;
              max-height: 16rem;
              overflow: auto;
              border: 1px solid var(--line);
              border-radius: var(--round-small);
              background: var(--surface);
              font-size: 0.8rem;
              white-space: pre-wrap;
              overflow-wrap: anywhere;
            }

            .details h3 { margin-top: 0.6rem; font-size: 0.85rem; }

            /* Bodies have long lines, so they may cover the lanes. */
            .details pre,
            .details h3 {
              position: relative;
              margin-left: calc(-4 * var(--lane));
            }

            .details h3 { background: var(--surface); }

            /* Space above the first message after a pause. */
            .is-later .details { padding-top: 1.3rem; }
            .is-later .details:not([open]):hover { background: none; }
            .is-later .details summary::after { top: 1.25rem; }
            .is-later .flow::before,
            .is-later .flow::after { top: 2.05rem; }

            .note {
              align-self: center;
              margin-block: 0.4rem;
              padding: 0.2rem 0.9rem;
              border-radius: 1rem;
              background: var(--warn-soft);
              color: var(--warn);
              font-size: 0.92rem;
              font-weight: 550;
            }

            .note time { font-size: 0.82rem; font-weight: 400; font-variant-numeric: tabular-nums; }
            .note pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 0.8rem; }

            @media (prefers-reduced-motion: no-preference) {
              .is-new .details { animation: arrived 1.5s ease-out; }
            }

            @keyframes arrived {
              from { background: var(--accent-soft); }
            }

            @media (min-width: 110rem), (min-width: 48rem) and (max-width: 75.99rem) {
              .activity { --lane: 5.5rem; }
            }

            /* Too narrow for the names of the lanes. Each message names its sender and receiver too. */
            @media (max-width: 30rem) {
              .activity { --lane: 1.6rem; }
              .lanes { display: none; }
            }

            """#)
}
