import API
import Bytes
import EventLoop
import HTTP
import HTTP1

/// The requests that a listener of the sidecar gets. It passes those of the website's own programs on
/// to the relay, and refuses all others.
///
/// A browser on this machine sends requests on behalf of any page. It adds `Origin` or
/// `Sec-Fetch-Site`, which no program of a website needs; `Host` detects a foreign name that
/// resolves to this machine. On a Unix socket, the mode of the file decides who may call; over TCP,
/// every account of the machine can connect, so a token is required.
///
/// Tests: `SidecarRefusalTests`, `ConnectTests`.
struct SidecarPages: Pages {
    let sidecar: LoopBound<Sidecar>
    let requiresToken: Bool

    /// Answers carry the relay's own fields and no others.
    let commonFields: [Fields.Field] = []
    /// A caller that is gone would otherwise occupy one of the relay's streams for up to a minute.
    let endsWithCaller = true

    func answer(_ request: Request) async -> Response { await sidecar.value.answer(request) }

    func answer(to fault: PageFault) -> Response {
        switch fault {
        case .tooLarge(let limit): SidecarProblem.tooLarge.response("The body may have at most \(limit) bytes.")
        case .unanswered:
            SidecarProblem.unanswered.response(
                "The sidecar stops, or the relay took too long. The relay may have processed the request.")
        }
    }

    func refusal(of head: Request, to names: LocalNames) -> Response? {
        let hosts = head.fields.values("host")
        // A URI with a scheme and a host, or `*`, is for proxies.
        guard hosts.count == 1, head.path.hasPrefix("/") else {
            return SidecarProblem.malformed.response("Send one Host field, and a path that begins with a slash.")
        }
        guard names.contain(host: hosts[0]) else {
            return SidecarProblem.host.response("Use \(names.example) with the path of the route.")
        }
        if let name = ["origin", "sec-fetch-site"].first(where: { head.fields[$0] != nil }) {
            return SidecarProblem.browser.response(
                "Browsers send the field \(name). Only the website's own server may call.")
        }
        if requiresToken, !sidecar.value.admits(head.fields.values("authorization")) {
            return SidecarProblem.unauthenticated.response(
                "Send Authorization: Bearer and the token from the file of --token-file.")
        }
        let target = head.path + (head.query.map { "?\($0)" } ?? "")
        if let fault = PassedFields.fault(head.fields, target: target) {
            return SidecarProblem.malformed.response("The request cannot be passed on: \(fault).")
        }
        guard target.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }) else {
            return SidecarProblem.malformed.response("The path must be percent-encoded.")
        }
        return refusal(ofRoute: head.method, head.path)
    }

    /// The path is passed on as it is. The relay decodes no segment before it has found the route,
    /// and neither does this, so `%2F` and dots mean the same to both.
    private func refusal(ofRoute method: String, _ path: String) -> Response? {
        switch WebsiteRoutes.match(method, path) {
        case .route: nil
        case .wrongMethod(let allow): SidecarProblem.route.response("For websites, this path accepts \(allow).")
        case .nothing:
            SidecarProblem.route.response("Websites have no such route: GET /openapi.json lists all routes.")
        }
    }
}

/// The token that callers over TCP send (RFC 6750).
struct BearerToken {
    private let secret: Secret

    /// Fewer characters could be guessed.
    static let shortest = 32

    /// Returns nil if the text is too short, or cannot be sent as a token.
    init?(_ secret: Secret) {
        let isToken = secret.withBytes { bytes in
            bytes.count >= Self.shortest
                && bytes.allSatisfy { byte in
                    UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte | 0x20
                        || UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte || "-._~+/=".utf8.contains(byte)
                }
        }
        guard isToken else { return nil }
        self.secret = secret
    }

    /// Whether the only `Authorization` field has this token. The time tells nothing but its length.
    func matches(_ authorization: [String]) -> Bool {
        guard authorization.count == 1 else { return false }
        let parts = authorization[0].split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { return false }
        return secret.withBytes { Secret.matches(parts[1].utf8, $0) }
    }
}
