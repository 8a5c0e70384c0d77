/// The outcome of one attempt to deliver a webhook, as its courier reports it, before the queue
/// decides what follows.
public enum WebhookOutcome: Sendable, Equatable {
    /// The website answered, even if the answer did not arrive completely. `retryAfter` is the
    /// pause of its Retry-After, counted from now.
    case answered(status: Int, retryAfter: Duration? = nil)
    case unanswered(Silence)
    /// The request was not sent because the relay is overloaded or shuts down.
    case unsent

    /// The reason why there is no answer.
    public enum Silence: String, Sendable, CaseIterable {
        case timeout
        /// The name resolves only to addresses that are not permitted for webhooks.
        case refusedAddress
        /// The URL is `http:`, which is not permitted.
        case insecure
        case unknownHost
        case unreachable
        /// TLS failed, or the certificate is for another name or not trusted.
        case untrusted
        /// The connection broke, or the answer is not HTTP.
        case broken
    }
}

extension WebhookOutcome {
    /// The meaning of an outcome for this webhook and for later ones.
    public enum Meaning: Sendable, Equatable {
        case delivered
        /// The attempt failed and is repeated. If `isOverloaded`, the website may be overloaded and
        /// gets fewer requests at a time.
        case failed(isOverloaded: Bool, retryAfter: Duration?)
        /// The website wants no more webhooks.
        case unsubscribed
        /// This does not count as an attempt.
        case notAttempted
    }

    public var meaning: Meaning {
        switch self {
        case .answered(200...299, _): .delivered
        case .answered(410, _): .unsubscribed
        case .answered(429, let wish), .answered(502...504, let wish): .failed(isOverloaded: true, retryAfter: wish)
        case .answered(500...599, let wish): .failed(isOverloaded: false, retryAfter: wish)
        // Redirects are never followed: the operator decides where webhooks go.
        case .answered: .failed(isOverloaded: false, retryAfter: nil)
        case .unanswered(.timeout): .failed(isOverloaded: true, retryAfter: nil)
        case .unanswered: .failed(isOverloaded: false, retryAfter: nil)
        case .unsent: .notAttempted
        }
    }

    /// The reason of the failure for people; nil if there is none. It consists of the relay's words
    /// and the status, never of the website's text.
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
        case .unanswered(.broken): "connection lost"
        case .unsent: "the relay was busy"
        }
    }
}
