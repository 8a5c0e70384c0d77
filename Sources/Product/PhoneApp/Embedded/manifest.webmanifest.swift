// Written by dev/embed-pages from Assets/manifest.webmanifest. Do not edit.
extension AppFile {
    static let manifestWEBMANIFEST = AppFile(
        "manifest.webmanifest", type: "application/manifest+json",
        text: #"""
            {
              "id": "/phone/",
              "name": "Twoefay",
              "short_name": "Twoefay",
              "description": "Confirm your logins",
              "start_url": "/phone/",
              "scope": "/phone/",
              "display": "standalone",
              "background_color": "#f5f4f0",
              "theme_color": "#f5f4f0",
              "icons": [
                {"src": "/phone/icon.svg", "sizes": "any", "type": "image/svg+xml", "purpose": "any"},
                {"src": "/phone/icon-192.png", "sizes": "192x192", "type": "image/png", "purpose": "any maskable"},
                {"src": "/phone/icon-512.png", "sizes": "512x512", "type": "image/png", "purpose": "any maskable"}
              ]
            }

            """#)
}
