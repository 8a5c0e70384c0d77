// Written by deploy/embed-pages from Assets/shop.css. Do not edit.
extension PageFile {
    static let shopCSS = PageFile(
        "shop.css", type: "text/css; charset=utf-8",
        text: #"""
            body { color: inherit; }

            """#)
}
