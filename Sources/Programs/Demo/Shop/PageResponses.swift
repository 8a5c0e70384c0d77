import HTTP
import JSON
import TwoefayClient

/// The frame of every page, and the responses that replace a page.
extension Shop {
    /// Returns a page of the website.
    ///
    /// - Parameters:
    ///   - awaits: the path that the page's script polls; nil if the page does not change.
    ///   - reloads: whether the page reloads itself repeatedly in a browser without scripts.
    func page(
        _ visit: PageRequest, _ title: ShopText, _ body: HTML, status: Int = 200, awaits: String? = nil,
        reloads: Bool = false, fields: [Fields.Field] = []
    ) -> Response {
        let notice: Session.Notice? =
            sessions.change(visit.id) { session in
                defer { session.notice = nil }
                return session.notice
            } ?? nil
        let said = notice.map { notice -> HTML in
            #"<p class="notice \#(notice.kind.rawValue)" role="status">\#(visit(notice.text))</p>"#
        }
        let again: HTML = reloads ? #"<noscript><meta http-equiv="refresh" content="5"></noscript>"# : ""
        let awaited = awaits.map { path -> HTML in #" data-await="\#(path)""# }
        let html: HTML = """
            <!doctype html>
            <html lang="\(visit.language.rawValue)">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <title>\(visit(title)) · \(Self.name)</title>
            <link rel="icon" href="/icon.svg">
            <link rel="stylesheet" href="/base.css">
            <link rel="stylesheet" href="/shop.css">
            <script src="/shop.js" defer></script>\(again)
            </head>
            <body>
            <a class="skip button" href="#main">\(visit(.skip))</a>
            <header class="bar">
            <a class="name" href="/">\(Self.name)</a>
            \(menu(visit))
            </header>
            <main class="page" id="main"\(awaited)>
            <h1>\(visit(title))</h1>
            \(said)
            \(body)
            </main>
            <footer>
            \(languages(visit))
            </footer>
            </body>
            </html>

            """
        return responder.page(html.text, status: status, fields: cookies(visit) + fields)
    }

    private func menu(_ visit: PageRequest) -> HTML {
        guard visit.session.account != nil else {
            return """
                <nav aria-label="\(visit(.menu))">
                \(link(visit, "/login", .logIn))
                \(link(visit, "/signup", .signUp))
                </nav>
                """
        }
        return """
            <nav aria-label="\(visit(.menu))">
            \(link(visit, "/members", .members))
            \(link(visit, "/phones", .phones))
            \(link(visit, "/totp", .authenticator))
            \(link(visit, "/recovery", .recoveryCodes))
            \(form(visit, "/logout", "", .init(.logOut, style: "quiet"), style: "inline"))
            </nav>
            """
    }

    /// Returns a menu link, which is marked if the visitor is on that page or below it.
    private func link(_ visit: PageRequest, _ path: String, _ text: ShopText) -> HTML {
        let isHere = "\(visit.request.path)/".hasPrefix("\(path)/")
        let mark: HTML = isHere ? #" aria-current="page""# : ""
        return #"<a href="\#(path)"\#(mark)>\#(visit(text))</a>"#
    }

    private func languages(_ visit: PageRequest) -> HTML {
        let buttons = Language.allCases.map { language -> HTML in
            let pressed = language == visit.language ? "true" : "false"
            return """
                <button class="quiet" name="language" value="\(language.rawValue)" lang="\(language.rawValue)" \
                aria-pressed="\(pressed)">\(language.name)</button>
                """
        }
        return """
            <form method="post" action="/language" class="row">
            <input type="hidden" name="token" value="\(visit.session.token)">
            <input type="hidden" name="back" value="\(visit.request.method == "POST" ? "/" : visit.request.path)">
            \(buttons)
            </form>
            """
    }

    func chooseLanguage(_ visit: PageRequest) -> Response {
        sessions.change(visit.id) { $0.language = Language(rawValue: visit.field("language")) }
        let back = visit.form["back"] ?? ""
        return go(visit, to: Self.isOwnPath(back) ? back : "/")
    }

    /// Whether the path is on this website, so that a redirect to it is safe.
    ///
    /// It compares bytes, as browsers do: Swift does not treat a slash with a combining accent as a
    /// slash. Characters that a browser treats as a slash or drops are refused.
    private static func isOwnPath(_ path: String) -> Bool {
        let bytes = Array(path.utf8)
        let slash = UInt8(ascii: "/")
        return bytes.first == slash && bytes.dropFirst().first != slash
            && bytes.allSatisfy { (0x21...0x7e).contains($0) && $0 != UInt8(ascii: "\\") }
    }

    // MARK: Other answers

    func go(
        _ visit: PageRequest, to path: String, _ notice: Session.Notice? = nil, renewed: String? = nil,
        fields: [Fields.Field] = []
    ) -> Response {
        if let notice { sessions.change(renewed ?? visit.id) { $0.notice = notice } }
        return responder.redirect(to: path, fields: cookies(visit, renewed: renewed) + fields)
    }

    func problem(_ visit: PageRequest, _ status: Int, _ text: ShopText, fields: [Fields.Field] = []) -> Response {
        page(
            visit, .didNotWork,
            """
            <p class="notice bad" role="alert">\(visit(text))</p>
            <p><a class="button" href="/">\(visit(.toStart))</a></p>
            """, status: status, fields: fields)
    }

    /// Returns a page for a failed call. The visitor can try again.
    func trouble(_ visit: PageRequest, _ fault: CallFault) -> Response {
        if case .refused(let problem) = fault, ![429, 502, 503, 504].contains(problem.status) {
            return self.problem(visit, 500, .relayRefused(problem.requestID ?? "-"))
        }
        let seconds = fault.problem?.retryAfter?.components.seconds ?? 5
        let back = visit.request.method == "POST" ? "/" : visit.request.path
        return page(
            visit, .tryAgain,
            """
            <p class="notice warn" role="alert">\(visit(.relayIsAway))</p>
            <p><a class="button primary" href="\(back)">\(visit(.tryAgain))</a></p>
            """, status: 503, fields: [.init("retry-after", String(seconds))])
    }

    // MARK: Forms

    struct Button {
        let text: ShopText
        let style: String

        init(_ text: ShopText, style: String = "primary") { (self.text, self.style) = (text, style) }
    }

    /// Returns a form with the session's token. A forged form of another site does not have the
    /// token.
    func form(_ visit: PageRequest, _ action: String, _ fields: HTML, _ button: Button, style: String = "") -> HTML {
        """
        <form method="post" action="\(action)" class="\(style)">
        <input type="hidden" name="token" value="\(visit.session.token)">
        \(fields)
        <button class="\(button.style)">\(visit(button.text))</button>
        </form>
        """
    }

    /// Returns a labelled input field.
    ///
    /// - Parameters:
    ///   - attributes: the attributes, as HTML.
    ///   - fault: the fault of the entered value; nil if there is none.
    func field(
        _ visit: PageRequest, _ name: String, _ label: ShopText, value: String = "", attributes: HTML = #"type="text""#,
        hint: ShopText? = nil, fault: ShopText? = nil
    ) -> HTML {
        // The fault may be the same text as the hint, which is then shown once.
        let hint = hint == fault ? nil : hint
        let hinted = hint.map { words -> HTML in #"<p class="hint" id="\#(name)-hint">\#(visit(words))</p>"# }
        let wrong = fault.map { words -> HTML in #"<p class="error" id="\#(name)-error">\#(visit(words))</p>"# }
        let described = [hint.map { _ in "\(name)-hint" }, fault.map { _ in "\(name)-error" }].compactMap { $0 }
        let description: HTML =
            described.isEmpty ? "" : #" aria-describedby="\#(described.joined(separator: " "))""#
        let invalid: HTML = fault == nil ? "" : #" aria-invalid="true" autofocus"#
        return """
            <div class="field">
            <label for="\(name)">\(visit(label))</label>
            \(hinted)
            <input id="\(name)" name="\(name)" value="\(value)" \(attributes)\(description)\(invalid)>
            \(wrong)
            </div>
            """
    }
}
