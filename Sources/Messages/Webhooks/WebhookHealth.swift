import World

/// How it stands with the calls to one website, over all that it is told. All relays see the same, through the store.
public struct WebhookHealth: Sendable, Equatable {
    public enum State: Sendable, Equatable {
        case working
        /// No call has arrived since then, in so many tries.
        case failing(since: Timestamp, attempts: Int)
        /// Nothing is sent until an operator says so.
        case disabled(Reason, since: Timestamp)
    }

    public enum Reason: String, Sendable, CaseIterable {
        /// For days nothing arrived.
        case failures
        /// The website answered 410.
        case gone
        case `operator`
    }

    public enum Change: Sendable, Equatable {
        /// Somebody is to be told, this once.
        case disabled(Reason)
        /// It is back after a while: what waits need not wait any longer.
        case recovered
    }

    /// So long nothing arrives, in so many tries at least, until it is given up. One call alone, on a website of few users,
    /// has fewer tries than that.
    public static let timeout = Duration.seconds(3 * 86_400)
    public static let fewestTries = 10
    /// So long and so often it has failed before its success is news. Less than that is one call that it does not like.
    public static let outage = Duration.seconds(300)
    public static let outageTries = 3

    public private(set) var state: State

    public init(_ state: State = .working) { self.state = state }

    public var isDisabled: Bool { if case .disabled = state { true } else { false } }

    /// Whether more than one call at a time is too much for it.
    public var isDown: Bool {
        if case .failing(_, let tries) = state { tries >= Self.outageTries } else { false }
    }

    /// What an outcome changes. Of what was under way when it was disabled, nothing: that is the operator's to undo.
    public mutating func record(_ meaning: WebhookOutcome.Meaning, at now: Timestamp) -> Change? {
        if isDisabled { return nil }
        switch meaning {
        case .notAttempted: return nil
        case .unsubscribed: return disable(.gone, at: now)
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

    /// Nil where it is disabled already: whoever did that first has told of it.
    public mutating func disable(_ reason: Reason, at now: Timestamp) -> Change? {
        if isDisabled { return nil }
        state = .disabled(reason, since: now)
        return .disabled(reason)
    }

    /// By an operator. It begins anew, with all the patience there is. False where there is nothing to enable.
    public mutating func enable() -> Bool {
        guard isDisabled else { return false }
        state = .working
        return true
    }
}
