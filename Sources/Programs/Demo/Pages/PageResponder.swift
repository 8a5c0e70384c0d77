import HTTP
import JSON

/// What all answers of one origin have in common: what its pages may load, who may show them in a frame, and its files.
public struct PageResponder: Sendable {
    private let policy: String
    private let files: [String: PageFile]

    /// - Parameters:
    ///   - frames: the origins that its pages may show in frames.
    ///   - framedBy: the origin that may show its pages in a frame; nil: nobody.
    ///   - files: each is there under its name.
    init(frames: [String] = [], framedBy: String? = nil, files: [PageFile]) {
        var policy = [
            "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:", "connect-src 'self'",
            "form-action 'self'", "base-uri 'none'", "frame-ancestors \(framedBy ?? "'none'")",
        ]
        if !frames.isEmpty { policy.append("frame-src \(frames.joined(separator: " "))") }
        self.policy = policy.joined(separator: "; ")
        self.files = Dictionary(uniqueKeysWithValues: files.map { ("/\($0.name)", $0) })
    }

    /// The file that is asked for, if it is one of these.
    func file(for request: Request) -> Response? {
        guard request.method != "POST", let file = files[request.path] else { return nil }
        return respond(200, type: file.type, Array(file.text.utf8))
    }

    func page(_ html: String, status: Int = 200, fields: [Fields.Field] = []) -> Response {
        respond(status, type: "text/html; charset=utf-8", Array(html.utf8), fields)
    }

    func json(_ object: JSONObject, status: Int = 200) -> Response {
        respond(status, type: "application/json", JSONWriter.write(object))
    }

    /// After a POST, and wherever else another page is to be asked for.
    func redirect(to path: String, fields: [Fields.Field] = []) -> Response {
        respond(303, type: "text/plain; charset=utf-8", [], [.init("location", path)] + fields)
    }

    /// What somebody else has said: its type is among the fields.
    func bytes(_ body: [UInt8], status: Int, fields: [Fields.Field]) -> Response {
        Response(status: status, fields: Fields(always + fields), body: body)
    }

    func refusal(_ status: Int, _ text: String) -> Response {
        respond(status, type: "text/plain; charset=utf-8", Array("\(text)\n".utf8))
    }

    private func respond(_ status: Int, type: String, _ body: [UInt8], _ fields: [Fields.Field] = []) -> Response {
        bytes(body, status: status, fields: [.init("content-type", type)] + fields)
    }

    /// `no-referrer` would make a browser send `Origin: null` with a form's POST, and nobody could tell it from a stranger's.
    /// That nothing is kept and types are as they are said is the server's own doing.
    private var always: [Fields.Field] {
        [
            .init("content-security-policy", policy), .init("cross-origin-opener-policy", "same-origin"),
            .init("cross-origin-resource-policy", "same-origin"), .init("referrer-policy", "same-origin"),
        ]
    }
}
