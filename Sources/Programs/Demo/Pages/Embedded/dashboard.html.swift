// Written by dev/embed-pages from Assets/dashboard.html. Do not edit.
extension PageFile {
    static let dashboardHTML = PageFile(
        "dashboard.html", type: "text/html; charset=utf-8",
        text: #"""
            <!doctype html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <title>Twoefay demo</title>
            <link rel="icon" href="/icon.svg">
            <link rel="stylesheet" href="/base.css">
            <link rel="stylesheet" href="/dashboard.css">
            <link rel="stylesheet" href="/dashboard-messages.css">
            <script type="module" src="/dashboard.js"></script>
            </head>
            <body>
            <a class="skip button" href="#activity" data-text="skip">Skip to the messages</a>
            <header class="bar">
            <div class="row">
            <h1 class="name">Twoefay</h1>
            <span class="badge" id="relay-state">…</span>
            <p class="lead" data-text="lead">A website asks your phone whether it is you. Everything runs on this machine.</p>
            </div>
            <nav aria-label="Language" data-text-label="languages">
            <button type="button" class="quiet" data-language="en" lang="en">English</button>
            <button type="button" class="quiet" data-language="de" lang="de">Deutsch</button>
            </nav>
            </header>
            <p class="gone notice warn" id="gone" role="status"></p>
            <main class="dashboard">
            <section class="card guide" aria-labelledby="guide-title">
            <h2 class="unseen" id="guide-title" data-text="guideTitle">First steps</h2>
            <ol id="steps">
            <li data-step="signUp"><strong data-text="signUp">Sign up</strong> <span class="hint" data-text="signUpHint">On the website, with any name and password.</span></li>
            <li data-step="bind"><strong data-text="bind">Add the phone</strong> <span class="hint" data-text="bindHint">On the phone, press “Scan the code on the website”.</span></li>
            <li data-step="logIn"><strong data-text="logIn">Log out and log in again</strong> <span class="hint" data-text="logInHint">The phone shows a request and needs the number on the website.</span></li>
            </ol>
            </section>
            <section class="card screen website" aria-labelledby="website-title">
            <div class="row apart">
            <h2 id="website-title" data-text="website">Website</h2>
            <a href="{{website}}/" target="_blank" rel="noopener" data-text="alone">Open in a new tab</a>
            </div>
            <iframe id="website" src="{{website}}/" title="The sample website" data-text-title="websiteFrame" allow="clipboard-write"></iframe>
            </section>
            <section class="card screen phones" aria-labelledby="phone-title">
            <h2 id="phone-title" class="unseen" data-text="phones">Phones</h2>
            <div class="row tabs" role="tablist" aria-labelledby="phone-title">
            <button type="button" role="tab" id="tab-1" aria-controls="panel-1" aria-selected="true">Phone 1</button>
            <button type="button" role="tab" id="tab-2" aria-controls="panel-2" aria-selected="false" tabindex="-1">Phone 2</button>
            </div>
            <div role="tabpanel" id="panel-1" aria-labelledby="tab-1"><iframe src="{{phone}}/?phone=1" title="Phone 1"></iframe></div>
            <div role="tabpanel" id="panel-2" aria-labelledby="tab-2" hidden><iframe data-src="{{phone}}/?phone=2" title="Phone 2"></iframe></div>
            </section>
            <section class="card switches" aria-labelledby="switches-title">
            <div class="row apart">
            <h2 id="switches-title" data-text="switchesTitle">Break something and log in again</h2>
            <button type="button" class="quiet" id="operator" data-text="operator">Operator: unlock accounts</button>
            </div>
            <div class="row" id="switches"></div>
            </section>
            <section class="card activity" id="activity" tabindex="-1" aria-labelledby="activity-title">
            <div class="row apart">
            <h2 id="activity-title" data-text="activity">Messages</h2>
            <div class="row">
            <button type="button" role="switch" aria-checked="false" class="toggle" id="routine" data-text="routine">Show polling</button>
            <button type="button" class="quiet" id="clear" data-text="clear">Clear</button>
            </div>
            </div>
            <div class="lanes" aria-hidden="true">
            <span data-text="website">Website</span><span data-text="relay">Relay</span><span data-text="carriers">Push, SMS</span><span data-text="phone">Phone</span>
            </div>
            <p class="muted" id="nothing" data-text="nothing">No messages yet. Sign up on the website.</p>
            <div id="log" role="log" aria-labelledby="activity-title"><ol id="messages"></ol></div>
            </section>
            </main>
            <noscript><p class="notice warn">This page needs JavaScript. / Diese Seite braucht JavaScript.</p></noscript>
            </body>
            </html>

            """#)
}
