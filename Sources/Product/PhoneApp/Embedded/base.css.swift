// Written by dev/embed-pages from Assets/base.css. Do not edit.
extension AppFile {
    static let baseCSS = AppFile(
        "base.css", type: "text/css; charset=utf-8",
        text: #"""
            /* Colours, type, buttons, inputs and notices. Each pair of colours has a contrast of 4.5 or more. */

            :root {
              color-scheme: light dark;
              --ground: #f5f4f0;
              --surface: #ffffff;
              --sunken: #eceae4;
              --text: #1c2430;
              --muted: #515c6b;
              --line: #d9d6cd;
              --edge: #76808e;
              --accent: #0b626e;
              --accent-strong: #084a54;
              --accent-soft: #e0f0f1;
              --on-accent: #ffffff;
              --good: #1d6a3a;
              --good-soft: #e2f2e6;
              --bad: #a8261c;
              --bad-strong: #861b13;
              --bad-soft: #fbe7e4;
              --on-bad: #ffffff;
              --warn: #7a4b00;
              --warn-soft: #fbefd9;
              --focus: #1554c0;
              --round: 14px;
              --round-small: 10px;
              --mono: ui-monospace, "SFMono-Regular", "Cascadia Mono", "DejaVu Sans Mono", monospace;
            }

            @media (prefers-color-scheme: dark) {
              :root {
                --ground: #11151b;
                --surface: #1a2029;
                --sunken: #232b36;
                --text: #e9ecf1;
                --muted: #adb7c4;
                --line: #323c49;
                --edge: #8592a3;
                --accent: #76cbd6;
                --accent-strong: #a2dee6;
                --accent-soft: #16343a;
                --on-accent: #04262b;
                --good: #86d7a1;
                --good-soft: #15321f;
                --bad: #ffa198;
                --bad-strong: #ffc0ba;
                --bad-soft: #431a17;
                --on-bad: #3a0a06;
                --warn: #f0c271;
                --warn-soft: #3a2b0d;
                --focus: #9cc2ff;
              }
            }

            *,
            *::before,
            *::after {
              box-sizing: border-box;
            }

            html {
              -webkit-text-size-adjust: 100%;
              text-size-adjust: 100%;
            }

            body {
              margin: 0;
              background: var(--ground);
              color: var(--text);
              font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", "DejaVu Sans", sans-serif;
              overflow-wrap: break-word;
            }

            h1,
            h2,
            p,
            ul,
            ol,
            dl,
            dd {
              margin: 0;
            }

            h1,
            h2 {
              line-height: 1.25;
              font-weight: 650;
              letter-spacing: -0.01em;
              text-wrap: balance;
            }

            h1 { font-size: 1.6rem; }
            h2 { font-size: 1.1rem; }

            [hidden] { display: none !important; }

            :focus-visible {
              outline: 3px solid var(--focus);
              outline-offset: 2px;
            }

            /* Elements that only a script focuses, such as headings, need no outline. */
            [tabindex="-1"]:focus { outline: none; }

            .muted { color: var(--muted); }
            .small { font-size: 0.9rem; }
            .centred { text-align: center; }

            .unseen {
              position: absolute;
              width: 1px;
              height: 1px;
              margin: -1px;
              overflow: hidden;
              clip-path: inset(50%);
              white-space: nowrap;
            }

            /* Buttons, large enough for a thumb */

            button,
            .button {
              display: inline-flex;
              align-items: center;
              justify-content: center;
              gap: 0.5rem;
              min-height: 3rem;
              padding: 0.6rem 1.1rem;
              border: 1px solid var(--edge);
              border-radius: var(--round-small);
              background: var(--surface);
              color: var(--text);
              font: inherit;
              font-weight: 550;
              line-height: 1.25;
              text-align: center;
              text-decoration: none;
              cursor: pointer;
            }

            button:hover { background: var(--sunken); }

            button.primary {
              background: var(--accent);
              border-color: var(--accent);
              color: var(--on-accent);
            }

            button.primary:hover {
              background: var(--accent-strong);
              border-color: var(--accent-strong);
            }

            button.danger {
              border-color: var(--bad);
              color: var(--bad);
            }

            button.danger:hover { background: var(--bad-soft); }

            button.danger.primary {
              background: var(--bad);
              color: var(--on-bad);
            }

            button.danger.primary:hover {
              background: var(--bad-strong);
              border-color: var(--bad-strong);
            }

            button.quiet {
              border-color: transparent;
              background: transparent;
              color: var(--accent);
            }

            button.quiet:hover { background: var(--sunken); }

            button:disabled,
            button:disabled:hover {
              background: var(--sunken);
              border-color: var(--line);
              color: var(--muted);
              cursor: default;
            }

            /* Forms */

            form {
              display: flex;
              flex-direction: column;
              gap: 0.9rem;
            }

            .field {
              display: flex;
              flex-direction: column;
              gap: 0.3rem;
            }

            label { font-weight: 550; }

            .hint {
              color: var(--muted);
              font-size: 0.9rem;
            }

            .error {
              color: var(--bad);
              font-size: 0.9rem;
              font-weight: 550;
            }

            .error:empty { display: none; }

            input,
            select,
            textarea {
              width: 100%;
              min-height: 3rem;
              padding: 0.5rem 0.75rem;
              border: 1px solid var(--edge);
              border-radius: var(--round-small);
              background: var(--surface);
              color: var(--text);
              font: inherit;
            }

            textarea {
              min-height: 5.5rem;
              resize: vertical;
            }

            input[type="checkbox"] {
              flex: none;
              width: 1.4rem;
              height: 1.4rem;
              min-height: 0;
              margin: 0.1rem 0 0;
              accent-color: var(--accent);
            }

            .choice {
              display: flex;
              gap: 0.75rem;
              padding: 0.6rem 0;
              cursor: pointer;
            }

            input[aria-invalid="true"],
            textarea[aria-invalid="true"] {
              border-color: var(--bad);
              border-width: 2px;
            }

            input.digits {
              font-family: var(--mono);
              font-size: 1.5rem;
              letter-spacing: 0.3em;
              text-align: center;
              font-variant-numeric: tabular-nums;
            }

            /* Notices */

            .notice {
              padding: 0.75rem 1rem;
              border-radius: var(--round-small);
              border-inline-start: 4px solid var(--accent);
              background: var(--accent-soft);
            }

            .notice.good { border-color: var(--good); background: var(--good-soft); }
            .notice.bad { border-color: var(--bad); background: var(--bad-soft); }
            .notice.warn { border-color: var(--warn); background: var(--warn-soft); }

            .badge {
              display: inline-block;
              padding: 0.1rem 0.55rem;
              border-radius: 99px;
              background: var(--sunken);
              font-size: 0.82rem;
              font-weight: 600;
              white-space: nowrap;
            }

            .badge.good { background: var(--good-soft); color: var(--good); }
            .badge.bad { background: var(--bad-soft); color: var(--bad); }
            .badge.warn { background: var(--warn-soft); color: var(--warn); }

            @media (prefers-reduced-motion: no-preference) {
              button { transition: background-color 0.15s, border-color 0.15s; }
            }

            @media (forced-colors: active) {
              button,
              .card,
              .notice,
              .badge { border: 1px solid; }
            }

            """#)
}
