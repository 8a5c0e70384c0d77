import HTTP
import JSON

/// Makes the responses of one origin. It adds the origin's content security policy and serves its
/// files. Tested in `PagesTests.swift`.
public struct PageResponder: Sendable {
    private let policy: String
    private let files: [String: PageFile]

    /// Creates a responder.
    ///
    /// - Parameters:
    ///   - frames: the origins that its pages may show in frames.
    ///   - framedBy: the origin that may show its pages in a frame; nil if none may.
    ///   - files: the files, each served under its name.
    init(frames: [String] = [], framedBy: String? = nil, files: [PageFile]) {
        var policy = [
            "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:", "connect-src 'self'",
            "form-action 'self'", "base-uri 'none'", "frame-ancestors \(framedBy ?? "'none'")",
        ]
        if !frames.isEmpty { policy.append("frame-src \(frames.joined(separator: " "))") }
        self.policy = policy.joined(separator: "; ")
        self.files = Dictionary(uniqueKeysWithValues: files.map { ("/\($0.name)", $0) })
    }

    /// Returns the requested file; nil if there is none.
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

    /// Redirects to another page, for example after a POST.
    func redirect(to path: String, fields: [Fields.Field] = []) -> Response {
        respond(303, type: "text/plain; charset=utf-8", [], [.init("location", path)] + fields)
    }

    /// Passes on a response of another server. `fields` must contain the content type.
    func bytes(_ body: [UInt8], status: Int, fields: [Fields.Field]) -> Response {
        Response(status: status, fields: Fields(always + fields), body: body)
    }

    func refusal(_ status: Int, _ text: String) -> Response {
        respond(status, type: "text/plain; charset=utf-8", Array("\(text)\n".utf8))
    }

    private func respond(_ status: Int, type: String, _ body: [UInt8], _ fields: [Fields.Field] = []) -> Response {
        bytes(body, status: status, fields: [.init("content-type", type)] + fields)
    }

    /// The fields of every response.
    ///
    /// The referrer policy is not `no-referrer`: with that, a browser sends `Origin: null` with the
    /// POST of a form, like a request from another site. The server itself adds the fields against
    /// caching and content sniffing.
    private var always: [Fields.Field] {
        [
            .init("content-security-policy", policy), .init("cross-origin-opener-policy", "same-origin"),
            .init("cross-origin-resource-policy", "same-origin"), .init("referrer-policy", "same-origin"),
        ]
    }
}
