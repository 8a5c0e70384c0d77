// Written by dev/embed-pages from Assets/phone.html. Do not edit.
extension PageFile {
    static let phoneHTML = PageFile(
        "phone.html", type: "text/html; charset=utf-8",
        text: #"""
            <!doctype html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <title>Twoefay phone</title>
            <link rel="icon" href="/icon.svg">
            <link rel="stylesheet" href="/base.css">
            <link rel="stylesheet" href="/phone.css">
            <script type="module" src="/phone.js"></script>
            </head>
            <body>
            <a class="skip button" id="skip" href="#screen"></a>
            <div class="phone">
            <header class="status"><span id="clock"></span><span id="owner"></span><span id="signal" aria-hidden="true"></span></header>
            <p class="banner" id="banner" role="status"></p>
            <div id="notifications" aria-live="assertive"></div>
            <main id="screen" tabindex="0"></main>
            <nav id="tabs" class="tabs"></nav>
            </div>
            <noscript><p class="notice warn">This phone needs JavaScript to make its keys. / Dieses Telefon braucht JavaScript, um seine Schlüssel zu erzeugen.</p></noscript>
            </body>
            </html>

            """#)
}
