// Written by dev/embed-pages from Assets/index.html. Do not edit.
extension AppFile {
    static let indexHTML = AppFile(
        "index.html", type: "text/html; charset=utf-8",
        text: #"""
            <!doctype html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover">
            <meta name="theme-color" content="#f5f4f0" media="(prefers-color-scheme: light)">
            <meta name="theme-color" content="#11151b" media="(prefers-color-scheme: dark)">
            <meta name="mobile-web-app-capable" content="yes">
            <meta name="apple-mobile-web-app-capable" content="yes">
            <meta name="apple-mobile-web-app-title" content="Twoefay">
            <meta name="referrer" content="no-referrer">
            <meta name="robots" content="noindex">
            <title>Twoefay</title>
            <link rel="manifest" href="/phone/manifest.webmanifest">
            <link rel="icon" href="/phone/icon.svg" type="image/svg+xml">
            <link rel="apple-touch-icon" href="/phone/icon-192.png">
            <link rel="stylesheet" href="/phone/base.css">
            <link rel="stylesheet" href="/phone/app.css">
            <link rel="stylesheet" href="/phone/parts.css">
            <script type="module" src="/phone/fragment.js"></script>
            <script type="module" src="/phone/main.js"></script>
            </head>
            <body>
            <a class="skip button" id="skip" href="#screen">Skip to content</a>
            <div class="app">
            <div class="banner" id="banner" role="status"></div>
            <main id="screen" tabindex="-1"></main>
            <nav id="tabs" class="tabs"></nav>
            </div>
            <div class="unseen" id="announcer" role="status"></div>
            <noscript><p class="notice warn">This app needs JavaScript to make its keys. / Diese App braucht JavaScript, um ihre Schlüssel zu erzeugen.</p></noscript>
            </body>
            </html>

            """#)
}
