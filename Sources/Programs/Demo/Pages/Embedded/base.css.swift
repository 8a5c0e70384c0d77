// Written by dev/embed-pages from Assets/base.css. Do not edit.
extension PageFile {
    static let baseCSS = PageFile(
        "base.css", type: "text/css; charset=utf-8",
        text: #"""
            /* The common style of website, phone and dashboard. Each extends it, and uses only the colours defined here.

               .page      the middle of a page, as wide as text is read      .bar       the line at its top: name, navigation
               .card      a surface with something on it                     .stack     things under each other, with room between
               .button    a link or button; .primary, .danger, .quiet        .row       things beside each other, as far as they fit
               .field     a label, its input and what is said about it       .notice    .good, .bad, .warn: what has just happened
               .facts     a dl of labels and values                          .badge     a small word of state; .good, .bad, .warn
               .list      a ul of things with their buttons                  .number    digits to carry over; .code: to copy
               .qr        a QR code, on white in the dark too                .unseen    for screen readers alone */

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
              --bezel: #20262f;
              --shadow: 0 1px 2px rgb(28 36 48 / 0.07), 0 6px 24px rgb(28 36 48 / 0.07);
              --round: 14px;
              --round-small: 9px;
              --room: 1rem;
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
                --bezel: #4a5768;
                --shadow: 0 1px 2px rgb(0 0 0 / 0.4), 0 6px 24px rgb(0 0 0 / 0.3);
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
              min-height: 100vh;
              background: var(--ground);
              color: var(--text);
              font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", "DejaVu Sans", sans-serif;
              overflow-wrap: break-word;
            }

            h1,
            h2,
            h3 {
              margin: 0;
              line-height: 1.25;
              font-weight: 650;
              letter-spacing: -0.01em;
              text-wrap: balance;
            }

            h1 { font-size: clamp(1.5rem, 1.2rem + 1.4vw, 2.1rem); }
            h2 { font-size: 1.25rem; }
            h3 { font-size: 1.05rem; }

            p,
            ul,
            ol,
            dl,
            dd,
            figure {
              margin: 0;
            }

            a {
              color: var(--accent);
              text-underline-offset: 0.15em;
            }

            a:hover { color: var(--accent-strong); }

            img,
            svg {
              max-width: 100%;
              height: auto;
            }

            code,
            pre,
            kbd {
              font-family: var(--mono);
              font-size: 0.92em;
            }

            hr {
              width: 100%;
              border: 0;
              border-top: 1px solid var(--line);
              margin: 0;
            }

            [hidden] { display: none !important; }

            :focus-visible {
              outline: 3px solid var(--focus);
              outline-offset: 2px;
            }

            /* Elements that only a script focuses, such as headings, need no outline. */
            [tabindex="-1"]:focus { outline: none; }

            /* Layout */

            .page {
              width: 100%;
              max-width: 44rem;
              margin-inline: auto;
              padding: clamp(1rem, 4vw, 2.5rem) clamp(1rem, 4vw, 1.5rem);
            }

            .page.narrow { max-width: 27rem; }

            .stack,
            .page {
              display: flex;
              flex-direction: column;
              gap: var(--room);
            }

            .stack.tight { gap: 0.4rem; }
            .stack.loose { gap: 1.75rem; }

            .row {
              display: flex;
              flex-wrap: wrap;
              align-items: center;
              gap: 0.75rem;
            }

            .row.apart { justify-content: space-between; }

            .bar {
              display: flex;
              flex-wrap: wrap;
              align-items: center;
              justify-content: space-between;
              gap: 0.5rem 1.25rem;
              padding: 0.75rem clamp(1rem, 4vw, 1.5rem);
              background: var(--surface);
              border-bottom: 1px solid var(--line);
            }

            .bar .name {
              font-weight: 650;
              color: inherit;
              text-decoration: none;
            }

            .bar nav {
              display: flex;
              flex-wrap: wrap;
              align-items: center;
              gap: 0.35rem 1.1rem;
            }

            .card {
              display: flex;
              flex-direction: column;
              gap: var(--room);
              padding: clamp(1rem, 4vw, 1.75rem);
              background: var(--surface);
              border: 1px solid var(--line);
              border-radius: var(--round);
              box-shadow: var(--shadow);
            }

            .muted { color: var(--muted); }
            .small { font-size: 0.9rem; }
            .centred { text-align: center; }

            .unseen {
              position: absolute;
              width: 1px;
              height: 1px;
              margin: -1px;
              padding: 0;
              overflow: hidden;
              clip-path: inset(50%);
              white-space: nowrap;
              border: 0;
            }

            .skip {
              position: absolute;
              left: 0.5rem;
              top: -4rem;
              z-index: 10;
            }

            .skip:focus { top: 0.5rem; }

            /* Buttons, large enough for a thumb */

            button,
            .button {
              display: inline-flex;
              align-items: center;
              justify-content: center;
              gap: 0.5rem;
              min-height: 2.75rem;
              padding: 0.5rem 1.1rem;
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

            button:hover,
            .button:hover {
              background: var(--sunken);
              color: var(--text);
            }

            button.primary,
            .button.primary {
              background: var(--accent);
              border-color: var(--accent);
              color: var(--on-accent);
            }

            button.primary:hover,
            .button.primary:hover {
              background: var(--accent-strong);
              border-color: var(--accent-strong);
            }

            button.danger,
            .button.danger {
              border-color: var(--bad);
              color: var(--bad);
            }

            button.danger:hover,
            .button.danger:hover { background: var(--bad-soft); }

            button.danger.primary,
            .button.danger.primary {
              background: var(--bad);
              color: var(--on-bad);
            }

            button.danger.primary:hover,
            .button.danger.primary:hover {
              background: var(--bad-strong);
              border-color: var(--bad-strong);
            }

            button.quiet,
            .button.quiet {
              border-color: transparent;
              background: transparent;
              color: var(--accent);
            }

            button.quiet:hover,
            .button.quiet:hover {
              background: var(--sunken);
              color: var(--accent-strong);
            }

            button:disabled,
            button[aria-disabled="true"] {
              background: var(--sunken);
              border-color: var(--line);
              color: var(--muted);
              cursor: default;
            }

            /* Forms */

            form {
              display: flex;
              flex-direction: column;
              gap: var(--room);
            }

            form.inline { display: inline-flex; }

            .field {
              display: flex;
              flex-direction: column;
              gap: 0.3rem;
            }

            label,
            .label {
              font-weight: 550;
            }

            .hint {
              color: var(--muted);
              font-size: 0.9rem;
            }

            .field .error {
              color: var(--bad);
              font-size: 0.9rem;
              font-weight: 550;
            }

            input,
            select,
            textarea {
              width: 100%;
              min-height: 2.75rem;
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

            input[type="checkbox"],
            input[type="radio"] {
              width: 1.25rem;
              min-height: 1.25rem;
              height: 1.25rem;
              accent-color: var(--accent);
            }

            input[aria-invalid="true"],
            textarea[aria-invalid="true"] {
              border-color: var(--bad);
              border-width: 2px;
            }

            ::placeholder {
              color: var(--muted);
              opacity: 1;
            }

            input.digits {
              font-family: var(--mono);
              font-size: 1.35rem;
              letter-spacing: 0.3em;
              text-align: center;
              font-variant-numeric: tabular-nums;
            }

            /* Notices */

            .notice {
              padding: 0.75rem 1rem;
              border-radius: var(--round-small);
              border-left: 4px solid var(--accent);
              background: var(--accent-soft);
            }

            .notice.good {
              border-color: var(--good);
              background: var(--good-soft);
            }

            .notice.bad {
              border-color: var(--bad);
              background: var(--bad-soft);
            }

            .notice.warn {
              border-color: var(--warn);
              background: var(--warn-soft);
            }

            .badge {
              display: inline-block;
              padding: 0.1rem 0.55rem;
              border-radius: 99px;
              background: var(--sunken);
              color: var(--text);
              font-size: 0.82rem;
              font-weight: 600;
            }

            .badge.good {
              background: var(--good-soft);
              color: var(--good);
            }

            .badge.bad {
              background: var(--bad-soft);
              color: var(--bad);
            }

            .badge.warn {
              background: var(--warn-soft);
              color: var(--warn);
            }

            .facts {
              display: grid;
              grid-template-columns: minmax(5rem, auto) 1fr;
              gap: 0.4rem 1rem;
            }

            .facts dt { color: var(--muted); }

            .facts dd {
              min-width: 0;
              overflow-wrap: anywhere;
            }

            .list {
              display: flex;
              flex-direction: column;
              padding: 0;
              list-style: none;
            }

            .list > li {
              display: flex;
              flex-wrap: wrap;
              align-items: center;
              justify-content: space-between;
              gap: 0.5rem 1rem;
              padding: 0.75rem 0;
            }

            .list > li + li { border-top: 1px solid var(--line); }

            .number,
            .code {
              font-family: var(--mono);
              font-variant-numeric: tabular-nums;
            }

            .number {
              font-size: clamp(2.75rem, 2rem + 5vw, 4.25rem);
              font-weight: 650;
              line-height: 1.1;
              letter-spacing: 0.12em;
              text-align: center;
            }

            .code {
              padding: 0.5rem 0.75rem;
              border-radius: var(--round-small);
              background: var(--sunken);
              overflow-wrap: anywhere;
            }

            .codes {
              display: grid;
              grid-template-columns: repeat(auto-fill, minmax(11rem, 1fr));
              gap: 0.5rem;
              padding: 0;
              list-style: none;
            }

            /* Scanners need a dark code on a light ground. */
            .qr {
              align-self: center;
              width: min(100%, 15rem);
              padding: 0.75rem;
              border-radius: var(--round-small);
              background: #ffffff;
            }

            .qr svg,
            .qr img {
              display: block;
              width: 100%;
            }

            details > summary {
              cursor: pointer;
              font-weight: 550;
            }

            /* Waiting: three animated dots */
            .waiting {
              display: inline-flex;
              gap: 0.35rem;
            }

            .waiting > span {
              width: 0.55rem;
              height: 0.55rem;
              border-radius: 50%;
              background: var(--accent);
            }

            @media (prefers-reduced-motion: no-preference) {
              .waiting > span { animation: waiting 1.2s ease-in-out infinite; }
              .waiting > span:nth-child(2) { animation-delay: 0.15s; }
              .waiting > span:nth-child(3) { animation-delay: 0.3s; }

              button,
              .button { transition: background-color 0.15s, border-color 0.15s; }
            }

            @keyframes waiting {
              0%, 60%, 100% { opacity: 0.25; }
              30% { opacity: 1; }
            }

            @media (max-width: 28rem) {
              .facts { grid-template-columns: 1fr; gap: 0; }
              .facts dd + dt { margin-top: 0.5rem; }
              .row > .button,
              .row > button { flex: 1 1 auto; }
            }

            @media (forced-colors: active) {
              .button,
              button,
              .card,
              .notice,
              .badge { border: 1px solid; }
            }

            """#)
}
