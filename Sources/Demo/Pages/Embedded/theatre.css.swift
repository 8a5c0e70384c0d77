// Written by deploy/embed-pages from Assets/theatre.css. Do not edit.
extension PageFile {
    static let theatreCSS = PageFile(
        "theatre.css", type: "text/css; charset=utf-8",
        text: #"""
            /* Website and phone beside each other, and with them, where there is room, or below: who says what to whom, in four lanes. */

            .bar h1 { font-size: 1.15rem; }

            .stage {
              display: grid;
              grid-template-columns: minmax(0, 1fr) 25rem;
              grid-template-areas: "switches switches" "website phones" "talk talk";
              gap: var(--room);
              max-width: 90rem;
              margin-inline: auto;
              padding: var(--room) clamp(0.5rem, 2vw, 1.5rem) 3rem;
            }

            .switches { grid-area: switches; }
            .switches h2 { font-size: 1.05rem; }
            .phones { grid-area: phones; }
            .talk { grid-area: talk; }
            .screen:not(.phones) { grid-area: website; }

            .stage > .card { padding: 1rem; }

            .screen iframe {
              display: block;
              width: 100%;
              height: min(46rem, 82vh);
              border: 1px solid var(--line);
              border-radius: var(--round-small);
              background: var(--ground);
            }

            .screen:not(.phones) { display: flex; }
            .screen:not(.phones) iframe { flex: 1; }
            .screen h2 { font-size: 1.05rem; }

            [data-language][aria-pressed="true"] { background: var(--accent-soft); color: var(--accent-strong); }

            .tabs { gap: 0.4rem; }
            .tabs button { flex: 1; }

            .tabs button[aria-selected="true"] {
              background: var(--accent);
              border-color: var(--accent);
              color: var(--on-accent);
            }

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

            .lanes,
            .way {
              display: grid;
              grid-template-columns: repeat(4, minmax(0, 1fr));
            }

            .lanes {
              position: sticky;
              top: 0;
              z-index: 1;
              padding-block: 0.4rem;
              background: var(--surface);
              border-bottom: 1px solid var(--line);
              font-weight: 600;
              text-align: center;
            }

            #messages {
              display: flex;
              flex-direction: column;
              gap: 0.3rem;
              padding: 0;
              list-style: none;
            }

            #messages:not(.with-routine) .is-routine { display: none; }

            .way {
              background:
                linear-gradient(var(--line), var(--line)) 12.5% 0 / 1px 100% no-repeat,
                linear-gradient(var(--line), var(--line)) 37.5% 0 / 1px 100% no-repeat,
                linear-gradient(var(--line), var(--line)) 62.5% 0 / 1px 100% no-repeat,
                linear-gradient(var(--line), var(--line)) 87.5% 0 / 1px 100% no-repeat;
            }

            /* From the middle of one lane to the middle of another: half a lane is left out at both ends. */

            .said {
              position: relative;
              grid-row: 1;
              padding: 0.35rem 0.75rem 0.4rem;
              border: 1px solid var(--line);
              border-radius: var(--round-small);
              background: var(--sunken);
            }

            .said.span-1 { margin-inline: 25%; }
            .said.span-2 { margin-inline: 16.7%; }
            .said.span-3 { margin-inline: 12.5%; }
            .said.span-1,
            .said.span-2,
            .said.span-3 { min-width: 0; }
            .from-0 { grid-column-start: 1; }
            .from-1 { grid-column-start: 2; }
            .from-2 { grid-column-start: 3; }
            .to-1 { grid-column-end: 3; }
            .to-2 { grid-column-end: 4; }
            .to-3 { grid-column-end: 5; }

            .said.rightwards { border-right: 4px solid var(--accent); }
            .said.leftwards { border-left: 4px solid var(--accent); }
            .said.is-bad { border-color: var(--bad); }

            .said summary {
              display: flex;
              flex-wrap: wrap;
              gap: 0.1rem 0.6rem;
              align-items: baseline;
              cursor: pointer;
              border-radius: 4px;
            }

            .said .head { font-family: var(--mono); font-weight: 600; font-size: 0.9rem; }
            .said summary { font-weight: 400; }
            .said .about { flex-basis: 100%; font-size: 0.9rem; }
            .said time, .note time { color: var(--muted); font-size: 0.85rem; font-variant-numeric: tabular-nums; }
            .said .who { color: var(--muted); font-size: 0.85rem; }

            .said pre {
              margin: 0.5rem 0 0;
              padding: 0.6rem;
              max-height: 24rem;
              overflow: auto;
              border-radius: var(--round-small);
              background: var(--surface);
              font-size: 0.8rem;
              white-space: pre-wrap;
              overflow-wrap: anywhere;
            }

            .said h3 { margin-top: 0.6rem; font-size: 0.85rem; }

            .note {
              align-self: center;
              padding: 0.2rem 0.9rem;
              border-radius: 1rem;
              background: var(--warn-soft);
              color: var(--warn);
              font-weight: 550;
            }

            .note pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 0.8rem; }

            @media (min-width: 96rem) {
              .stage {
                grid-template-columns: minmax(0, 1fr) 25rem minmax(0, 1fr);
                grid-template-areas: "switches switches switches" "website phones talk";
                max-width: none;
              }

              .talk { max-height: calc(min(46rem, 82vh) + 6rem); overflow-y: auto; }
              .lanes { top: -1rem; }
              .said.span-1 { margin-inline: 4%; }
            }

            @media (max-width: 62rem) {
              .stage {
                grid-template-columns: minmax(0, 1fr);
                grid-template-areas: "switches" "website" "phones" "talk";
              }

              .lanes { display: none; }
              .way { display: block; background: none; }
              .said.span-1, .said.span-2, .said.span-3 { margin-inline: 0; }
              .said.rightwards { margin-right: 1.5rem; }
              .said.leftwards { margin-left: 1.5rem; }
            }

            @media (max-width: 30rem) {
              .switches button { width: 100%; justify-content: flex-start; }
            }

            """#)
}
