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
            <title>Not this way · Twoefay demo</title>
            <link rel="icon" href="/icon.svg">
            <link rel="stylesheet" href="/base.css">
            </head>
            <body>
            <main class="page">
            <h1>Not this way</h1>
            <p>This demo is for whoever started it. Take the address from the terminal: it carries a secret of this run.</p>
            <p lang="de">Diese Vorführung ist für den, der sie gestartet hat. Nehmen Sie die Adresse aus dem Terminal: Sie trägt ein Geheimnis dieses Laufs.</p>
            </main>
            </body>
            </html>

            """#)
}
