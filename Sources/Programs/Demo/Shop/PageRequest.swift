import Bytes
import HTTP

/// One request, and whose it is.
struct PageRequest: Sendable {
    let request: Request
    /// Of the session.
    let id: String
    let session: Session
    /// The browser does not know it yet.
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

    /// What somebody typed, but for blanks around it.
    func field(_ name: String) -> String {
        let text = form[name] ?? ""
        guard let first = text.firstIndex(where: { !$0.isWhitespace }),
            let last = text.lastIndex(where: { !$0.isWhitespace })
        else { return "" }
        return String(text[first...last])
    }

    /// The form came from a page of ours, in this session.
    var isMeant: Bool { Secret.matches((form["token"] ?? "").utf8, session.token.utf8) }

    /// As the browser wishes, unless somebody chose.
    var language: Language { session.language ?? Language(accepted: request.fields["accept-language"]) }

    func callAsFunction(_ words: ShopText) -> String { words.text(in: language) }

    /// `Firefox on Linux`: what a phone can show of a browser, and somebody recognise.
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
