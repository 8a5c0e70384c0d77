import World

/// The health of the webhooks to one website, across all its challenges and events. All relays
/// share it through the store.
///
/// The rules: any success makes the endpoint healthy. Repeated failures over `timeout` disable it,
/// and so does the answer 410. Only an operator enables it again. Tests: `WebhookHealthTests`.
public struct WebhookHealth: Sendable, Equatable {
    public enum State: Sendable, Equatable {
        case working
        /// No webhook has arrived since then; the number counts the failed attempts.
        case failing(since: Timestamp, attempts: Int)
        /// No webhooks are sent until an operator enables the endpoint.
        case disabled(Reason, since: Timestamp)
    }

    public enum Reason: String, Sendable, CaseIterable {
        /// No webhook arrived for days.
        case failures
        /// The website answered 410.
        case unsubscribed
        case `operator`
    }

    public enum Change: Sendable, Equatable {
        /// The endpoint was disabled; this is reported once.
        case disabled(Reason)
        /// The endpoint works again after an outage: waiting webhooks are due at once.
        case recovered
    }

    /// The duration of failures after which the endpoint is disabled. `fewestTries` must also be
    /// reached. On a website with few users, a single webhook makes fewer attempts than that.
    public static let timeout = Duration.seconds(3 * 86_400)
    public static let fewestTries = 10
    /// The duration of failures, together with `outageTries`, after which a success counts as a
    /// recovery. Fewer failures mean that the website rejects a single webhook.
    public static let outage = Duration.seconds(300)
    public static let outageTries = 3

    public private(set) var state: State

    public init(_ state: State = .working) { self.state = state }

    public var isDisabled: Bool { if case .disabled = state { true } else { false } }

    /// Whether the website is in an outage, and so gets only a single webhook at a time.
    public var isDown: Bool {
        if case .failing(_, let tries) = state { tries >= Self.outageTries } else { false }
    }

    /// Records an outcome and returns the change, if any. While the endpoint is disabled, outcomes
    /// change nothing: only the operator can enable it.
    public mutating func record(_ meaning: WebhookOutcome.Meaning, at now: Timestamp) -> Change? {
        if isDisabled { return nil }
        switch meaning {
        case .notAttempted: return nil
        case .unsubscribed: return disable(.unsubscribed, at: now)
        case .delivered:
            defer { state = .working }
            guard case .failing(let since, _) = state, isDown, now - since >= Self.outage else { return nil }
            return .recovered
        case .failed:
            guard case .failing(let since, let tries) = state else {
                state = .failing(since: now, attempts: 1)
                return nil
            }
            state = .failing(since: since, attempts: tries + 1)
            guard tries + 1 >= Self.fewestTries, now - since >= Self.timeout else { return nil }
            return disable(.failures, at: now)
        }
    }

    /// Disables the endpoint. Returns nil if it is disabled already, since the first change was
    /// reported.
    public mutating func disable(_ reason: Reason, at now: Timestamp) -> Change? {
        if isDisabled { return nil }
        state = .disabled(reason, since: now)
        return .disabled(reason)
    }

    /// Enables the endpoint for an operator, with fresh counts. Returns false if it is not
    /// disabled.
    public mutating func enable() -> Bool {
        guard isDisabled else { return false }
        state = .working
        return true
    }
}
