// Written by dev/embed-pages from Assets/theatre-talk.css. Do not edit.
extension PageFile {
    static let theatreTalkCSS = PageFile(
        "theatre-talk.css", type: "text/css; charset=utf-8",
        text: #"""
            /* The messages: for each an arrow from lane to lane, what it is for in words, and its body behind a click. */

            .talk {
              --lane: 2.6rem;
            }

            .talk .toggle { border-color: transparent; background: none; }
            .talk .toggle:hover { background: var(--sunken); }

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

            /* Every other name stands higher: they are wider than their lanes. */
            .lanes span { margin-inline: -1rem; }
            .lanes span:nth-child(odd) { padding-bottom: 1.2em; }

            #messages {
              display: flex;
              flex-direction: column;
              padding: 0;
              list-style: none;
            }

            #messages:not(.with-routine) .is-routine { display: none; }

            .way {
              display: grid;
              grid-template-columns: calc(4 * var(--lane)) minmax(0, 1fr);
            }

            /* A line for each lane, which goes on from message to message. */
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

            .said {
              position: relative;
              min-width: 0;
              padding: 0.25rem 0.3rem 0.3rem;
              border-radius: var(--round-small);
            }

            .said summary {
              display: block;
              font-weight: 400;
              line-height: 1.4;
              border-radius: 4px;
            }

            .said:not([open]):hover { background: var(--sunken); }
            .said .about { display: block; padding-right: 1.2rem; font-size: 0.95rem; }
            .is-bad .about { color: var(--bad); }

            .said .fact {
              color: var(--muted);
              font-size: 0.8rem;
              font-variant-numeric: tabular-nums;
              overflow-wrap: anywhere;
            }

            .said .head { font-family: var(--mono); color: var(--text); }

            .said summary::after {
              content: "+";
              position: absolute;
              top: 0.25rem;
              right: 0.4rem;
              color: var(--muted);
              font-family: var(--mono);
            }

            .said[open] summary::after { content: "−"; }

            .said pre {
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

            .said h3 { margin-top: 0.6rem; font-size: 0.85rem; }

            /* Bodies have long lines: they may cover the lanes. */
            .said pre,
            .said h3 {
              position: relative;
              margin-left: calc(-4 * var(--lane));
            }

            .said h3 { background: var(--surface); }

            /* A pause before it: what follows belongs together. */
            .is-later .said { padding-top: 1.3rem; }
            .is-later .said:not([open]):hover { background: none; }
            .is-later .said summary::after { top: 1.25rem; }
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
              .is-new .said { animation: heard 1.5s ease-out; }
            }

            @keyframes heard {
              from { background: var(--accent-soft); }
            }

            @media (min-width: 110rem), (min-width: 48rem) and (max-width: 75.99rem) {
              .talk { --lane: 5.5rem; }
            }

            /* Too narrow for the names of the lanes; who speaks to whom stands at each message too. */
            @media (max-width: 30rem) {
              .talk { --lane: 1.6rem; }
              .lanes { display: none; }
            }

            """#)
}
