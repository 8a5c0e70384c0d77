import Bytes
import HTTP
import JSON
import World

/// The checks and answers of one service. Everything else, such as scripts, faults, connections and
/// records, is the same for all services.
protocol ServiceRules: Sendable {
    /// Checks a request as the service does.
    mutating func look(at request: Request, now: Timestamp) -> RequestFinding
    func acceptance(_ push: ReceivedPush) -> Response
    /// Returns a refusal as the service writes it.
    func refusal(
        _ reason: RefusalReason, id: String?, timestamp: Timestamp, _ randomness: any Randomness
    ) -> Response
}

enum RequestFinding {
    case wrong(RefusalReason)
    case right(ReceivedPush)
    /// The request is no push, and has this answer.
    case other(Response)
}

/// Apple's checks: the request, and the provider's token or certificate.
struct AppleRules: ServiceRules {
    let check: AppleCheck
    var tokens: ProviderTokenCheck

    mutating func look(at request: Request, now: Timestamp) -> RequestFinding {
        if let reason = check.wrongAddress(request) { return .wrong(reason) }
        let token: String?
        switch tokens.look(at: request, now: now) {
        case .wrong(let reason): return .wrong(reason)
        case .right(let found): token = found
        }
        switch check.look(at: request, providerToken: token) {
        case .wrong(let reason): return .wrong(reason)
        case .right(let push): return .right(push)
        }
    }

    func acceptance(_ push: ReceivedPush) -> Response {
        Response(status: 200, fields: Fields([Fields.Field("apns-id", push.id)]))
    }

    func refusal(
        _ reason: RefusalReason, id: String?, timestamp: Timestamp, _ randomness: any Randomness
    ) -> Response {
        var body: JSONObject = ["reason": .string(reason.rawValue)]
        if reason.status == 410 { body["timestamp"] = .integer(timestamp.milliseconds) }
        let fields = Fields([
            Fields.Field("apns-id", id.flatMap { AppleCheck.isUUID($0) ? $0 : nil } ?? Self.newID(randomness)),
            Fields.Field("content-type", "application/json"),
        ])
        return Response(status: reason.status, fields: fields, body: JSONWriter.write(body))
    }

    private static func newID(_ randomness: any Randomness) -> String {
        var rest = Substring(Hex.encode(randomness.bytes(16)))
        return [8, 4, 4, 4, 12].map { count in
            defer { rest = rest.dropFirst(count) }
            return rest.prefix(count)
        }.joined(separator: "-")
    }
}
