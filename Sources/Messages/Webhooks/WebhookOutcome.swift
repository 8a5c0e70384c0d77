/// What became of one try to tell a website something: what its courier says, before anybody decides what follows.
public enum WebhookOutcome: Sendable, Equatable {
    /// The website answered; where the rest of the answer did not come, all the same. `retryAfter`: what it asked for by
    /// Retry-After, from then on.
    case answered(status: Int, retryAfter: Duration? = nil)
    case unanswered(Silence)
    /// Nothing left, for a reason that is ours: too much is under way here, or the relay ends.
    case unsent

    /// Why there is no answer.
    public enum Silence: String, Sendable, CaseIterable {
        case timeout
        /// Its name leads only to addresses that callbacks may not be sent to.
        case refusedAddress
        /// `http:`, where that is not allowed.
        case insecure
        case unknownHost
        case unreachable
        /// No TLS, or a certificate that proves something else.
        case untrusted
        /// The connection broke, or what came is no HTTP.
        case broken
    }
}

extension WebhookOutcome {
    /// What an outcome means for the call, and for those that follow it.
    public enum Meaning: Sendable, Equatable {
        case delivered
        /// To be tried again. `isOverloaded`: the website may have too much to do, and is asked less often.
        case failed(isOverloaded: Bool, retryAfter: Duration?)
        /// The website wants none of these any more.
        case unsubscribed
        /// It was no try.
        case notAttempted
    }

    public var meaning: Meaning {
        switch self {
        case .answered(200...299, _): .delivered
        case .answered(410, _): .unsubscribed
        case .answered(429, let wish), .answered(502...504, let wish): .failed(isOverloaded: true, retryAfter: wish)
        case .answered(500...599, let wish): .failed(isOverloaded: false, retryAfter: wish)
        // Redirects are followed nowhere: the operator has the last word about where callbacks go.
        case .answered: .failed(isOverloaded: false, retryAfter: nil)
        case .unanswered(.timeout): .failed(isOverloaded: true, retryAfter: nil)
        case .unanswered: .failed(isOverloaded: false, retryAfter: nil)
        case .unsent: .notAttempted
        }
    }

    /// Why nothing came of it, for people: words of ours and a number of the website's, never its text. Nil where there is
    /// nothing to explain.
    public var reason: String? {
        switch self {
        case .answered(200...299, _): nil
        case .answered(let status, _) where (300...399).contains(status): "redirects (\(status))"
        case .answered(410, _): "gone (410)"
        case .answered(let status, _): "answered \(status)"
        case .unanswered(.timeout): "no answer in time"
        case .unanswered(.refusedAddress): "address not allowed"
        case .unanswered(.insecure): "not https"
        case .unanswered(.unknownHost): "unknown host"
        case .unanswered(.unreachable): "not reached"
        case .unanswered(.untrusted): "certificate not trusted"
        case .unanswered(.broken): "connection broke"
        case .unsent: "busy here"
        }
    }
}
