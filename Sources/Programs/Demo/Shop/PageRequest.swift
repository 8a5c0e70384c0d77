import Bytes
import HTTP

/// A request with the session to which it belongs.
struct PageRequest: Sendable {
    let request: Request
    /// The id of the session.
    let id: String
    let session: Session
    /// Whether the browser does not have the session's cookie yet.
    let isNew: Bool
    let form: FormText
    let query: FormText

    init(_ request: Request, id: String, session: Session, isNew: Bool) {
        self.request = request
        self.id = id
        self.session = session
        self.isNew = isNew
        form = FormText(request.method == "POST" ? request.body : [])
        query = FormText(query: request.query)
    }

    /// Returns a field of the form, without blanks at both ends.
    func field(_ name: String) -> String {
        let text = form[name] ?? ""
        guard let first = text.firstIndex(where: { !$0.isWhitespace }),
            let last = text.lastIndex(where: { !$0.isWhitespace })
        else { return "" }
        return String(text[first...last])
    }

    /// Whether the form came from a page of this website in this session, which protects against
    /// request forgery (CSRF).
    var isMeant: Bool { Secret.matches((form["token"] ?? "").utf8, session.token.utf8) }

    /// The language that the visitor chose; otherwise the browser's preference.
    var language: Language { session.language ?? Language(accepted: request.fields["accept-language"]) }

    func callAsFunction(_ words: ShopText) -> String { words.text(in: language) }

    /// A short name of the browser that a person recognises on the phone, such as `Firefox on
    /// Linux`.
    var browser: String? {
        guard let agent = request.fields["user-agent"], !agent.isEmpty else { return nil }
        let programs = [
            ("Edg/", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("Chrome/", "Chrome"), ("Safari/", "Safari"),
            ("curl/", "curl"),
        ]
        let systems = [
            ("Android", "Android"), ("iPhone", "iPhone"), ("iPad", "iPad"), ("Windows", "Windows"),
            ("Mac OS X", "macOS"), ("Linux", "Linux"),
        ]
        func name(in list: [(sign: String, name: String)]) -> String? { list.first { agent.contains($0.sign) }?.name }
        guard let program = name(in: programs) else { return nil }
        return name(in: systems).map { "\(program) on \($0)" } ?? program
    }
}
