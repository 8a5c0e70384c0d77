// Written by dev/embed-pages from Assets/theatre.html. Do not edit.
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
            <link rel="stylesheet" href="/theatre-talk.css">
            <script type="module" src="/theatre.js"></script>
            </head>
            <body>
            <a class="skip button" href="#talk" data-word="skip">To what is said</a>
            <header class="bar">
            <div class="row">
            <h1 class="name">Twoefay</h1>
            <span class="badge" id="relay-state">…</span>
            <p class="lead" data-word="lead">A website asks your phone whether it is you. All of it runs on this machine.</p>
            </div>
            <nav aria-label="Language" data-word-label="languages">
            <button type="button" class="quiet" data-language="en" lang="en">English</button>
            <button type="button" class="quiet" data-language="de" lang="de">Deutsch</button>
            </nav>
            </header>
            <p class="gone notice warn" id="gone" role="status"></p>
            <main class="stage">
            <section class="card guide" aria-labelledby="guide-title">
            <h2 class="unseen" id="guide-title" data-word="guideTitle">First steps</h2>
            <ol id="steps">
            <li data-step="signUp"><strong data-word="signUp">Sign up</strong> <span class="hint" data-word="signUpHint">On the website, with any name and password.</span></li>
            <li data-step="bind"><strong data-word="bind">Bind the phone</strong> <span class="hint" data-word="bindHint">On the phone, press “Scan what the website shows”.</span></li>
            <li data-step="logIn"><strong data-word="logIn">Log out, and log in</strong> <span class="hint" data-word="logInHint">The phone rings, and wants the website's number.</span></li>
            </ol>
            </section>
            <section class="card screen website" aria-labelledby="website-title">
            <div class="row apart">
            <h2 id="website-title" data-word="website">Website</h2>
            <a href="{{website}}/" target="_blank" rel="noopener" data-word="alone">In a tab of its own</a>
            </div>
            <iframe id="website" src="{{website}}/" title="The sample website" data-word-title="websiteFrame" allow="clipboard-write"></iframe>
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
            <section class="card switches" aria-labelledby="switches-title">
            <div class="row apart">
            <h2 id="switches-title" data-word="switchesTitle">Break something, and log in again</h2>
            <button type="button" class="quiet" id="operator" data-word="operator">Operator: unlock accounts</button>
            </div>
            <div class="row" id="switches"></div>
            </section>
            <section class="card talk" id="talk" tabindex="-1" aria-labelledby="talk-title">
            <div class="row apart">
            <h2 id="talk-title" data-word="talk">What is said</h2>
            <div class="row">
            <button type="button" role="switch" aria-checked="false" class="toggle" id="routine" data-word="routine">Show polling</button>
            <button type="button" class="quiet" id="clear" data-word="clear">Clear</button>
            </div>
            </div>
            <div class="lanes" aria-hidden="true">
            <span data-word="website">Website</span><span data-word="relay">Relay</span><span data-word="carriers">Push, SMS</span><span data-word="phone">Phone</span>
            </div>
            <p class="muted" id="nothing" data-word="nothing">Nothing has been said yet. Sign up on the website.</p>
            <div id="log" role="log" aria-labelledby="talk-title"><ol id="messages"></ol></div>
            </section>
            </main>
            <noscript><p class="notice warn">This page shows what happens as it happens, with JavaScript. / Diese Seite zeigt, was geschieht, mit JavaScript.</p></noscript>
            </body>
            </html>

            """#)
}
