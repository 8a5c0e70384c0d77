import Webhooks

extension WebhookFault: TwoefayError {
    /// `webhook`: the webhook is not the relay's. Answer 400.
    public var word: String { "webhook" }

    /// The check that failed, as a stable word.
    public var reason: String {
        switch self {
        case .missing, .repeated, .malformed: "headers"
        case .tooOld, .tooNew: "time"
        case .signature: "signature"
        case .body: "body"
        }
    }
}
