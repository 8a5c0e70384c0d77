// Written by deploy/embed-pages from Assets/theatre.html. Do not edit.
extension PageFile {
    static let theatreHTML = PageFile(
        "theatre.html", type: "text/html; charset=utf-8",
        text: #"""
            <!doctype html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <title>Twoefay demo</title>
            <link rel="icon" href="/icon.svg">
            <link rel="stylesheet" href="/base.css">
            <link rel="stylesheet" href="/theatre.css">
            <script type="module" src="/theatre.js"></script>
            </head>
            <body>
            <a class="skip button" href="#talk" data-word="skip">To what is said</a>
            <header class="bar">
            <h1 class="name">Twoefay <span class="badge" id="relay-state">…</span></h1>
            <nav aria-label="Language" data-word-label="languages">
            <button type="button" class="quiet" data-language="en" lang="en">English</button>
            <button type="button" class="quiet" data-language="de" lang="de">Deutsch</button>
            </nav>
            </header>
            <main class="stage">
            <section class="card switches" aria-labelledby="switches-title">
            <h2 id="switches-title" data-word="switchesTitle">Break something</h2>
            <div class="row">
            <div class="row" id="switches"></div>
            <button type="button" id="operator" data-word="operator">Operator: unlock accounts</button>
            </div>
            </section>
            <section class="card screen" aria-labelledby="website-title">
            <h2 id="website-title" data-word="website">Website</h2>
            <iframe id="website" src="{{website}}/" title="Website" data-word-title="websiteFrame"></iframe>
            </section>
            <section class="card screen phones" aria-labelledby="phone-title">
            <h2 id="phone-title" class="unseen" data-word="phones">Phones</h2>
            <div class="row tabs" role="tablist" aria-labelledby="phone-title">
            <button type="button" role="tab" id="tab-1" aria-controls="panel-1" aria-selected="true">Phone 1</button>
            <button type="button" role="tab" id="tab-2" aria-controls="panel-2" aria-selected="false" tabindex="-1">Phone 2</button>
            </div>
            <div role="tabpanel" id="panel-1" aria-labelledby="tab-1"><iframe src="{{phone}}/?phone=1" title="Phone 1"></iframe></div>
            <div role="tabpanel" id="panel-2" aria-labelledby="tab-2" hidden><iframe data-src="{{phone}}/?phone=2" title="Phone 2"></iframe></div>
            </section>
            <section class="card talk" id="talk" tabindex="-1" aria-labelledby="talk-title">
            <div class="row apart">
            <h2 id="talk-title" data-word="talk">What they say to each other</h2>
            <div class="row">
            <button type="button" role="switch" aria-checked="false" class="toggle" id="routine" data-word="routine">Show polling</button>
            <button type="button" class="quiet" id="clear" data-word="clear">Clear</button>
            </div>
            </div>
            <div class="lanes" aria-hidden="true">
            <span data-word="website">Website</span><span data-word="relay">Relay</span><span data-word="carriers">Push, mail, SMS</span><span data-word="phone">Phone</span>
            </div>
            <p class="muted" id="nothing" data-word="nothing">Nothing has been said yet. Sign up on the website.</p>
            <div role="log" aria-labelledby="talk-title"><ol id="messages"></ol></div>
            </section>
            </main>
            <noscript><p class="notice warn">This page shows what happens as it happens, with JavaScript. / Diese Seite zeigt, was geschieht, mit JavaScript.</p></noscript>
            </body>
            </html>

            """#)
}
