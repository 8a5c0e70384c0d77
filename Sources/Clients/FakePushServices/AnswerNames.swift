import HTTP
import HTTP2

extension RefusalReason {
    /// The status and reason as in the service's table: `410 Unregistered`.
    var words: String { "\(status) \(rawValue)" }
}

extension ErrorCode {
    /// The error codes that a control file may name.
    static let names: [(String, ErrorCode)] = [
        ("NO_ERROR", .noError), ("PROTOCOL_ERROR", .protocolError), ("INTERNAL_ERROR", .internalError),
        ("REFUSED_STREAM", .refusedStream), ("CANCEL", .cancel), ("ENHANCE_YOUR_CALM", .enhanceYourCalm),
    ]

    var words: String { Self.names.first { $0.1 == self }?.0 ?? String(rawValue) }
}

extension ScriptedAnswer {
    /// The final outcome of the request under this answer.
    var outcome: RecordedRequest.Outcome {
        switch self {
        case .accept, .goAway(replays: 0): .accepted
        case .refuse(let reason, _, _): .refused(reason)
        case .after(_, let then): then.outcome
        case .respond, .silence, .lost, .reset, .goAway, .cut, .freeze: .other
        }
    }

    var words: String {
        switch self {
        case .accept: "200"
        case .refuse(let reason, _, _): reason.words
        case .respond(let response): String(response.status)
        case .silence: "no answer"
        case .lost: "accepted, no answer"
        case .reset(let code, let accepts): Self.accepted(accepts) + "RST_STREAM \(code.words)"
        case .goAway(let replays): replays == 0 ? "200, GOAWAY" : "GOAWAY, not processed"
        case .cut(let accepts): Self.accepted(accepts) + "connection reset"
        case .freeze(let accepts): Self.accepted(accepts) + "connection frozen"
        case .after(_, let then): then.words
        }
    }

    private static func accepted(_ accepts: Bool) -> String { accepts ? "accepted, " : "" }
}
