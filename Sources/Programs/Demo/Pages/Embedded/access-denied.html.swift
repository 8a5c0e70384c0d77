// Written by dev/embed-pages from Assets/access-denied.html. Do not edit.
extension PageFile {
    static let accessDeniedHTML = PageFile(
        "access-denied.html", type: "text/html; charset=utf-8",
        text: #"""
            <!doctype html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <title>Access denied · Twoefay demo</title>
            <link rel="icon" href="/icon.svg">
            <link rel="stylesheet" href="/base.css">
            </head>
            <body>
            <main class="page">
            <h1>Access denied</h1>
            <p>This demo is only for the person who started it. Open the address that the terminal shows: it contains a secret for this run.</p>
            <p lang="de">Diese Demo ist nur für die Person, die sie gestartet hat. Öffnen Sie die Adresse aus dem Terminal: Sie enthält ein Geheimnis für diesen Start.</p>
            </main>
            </body>
            </html>

            """#)
}
