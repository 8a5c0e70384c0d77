import Domain
import Synchronization
import Webhooks
import World

/// The state of webhook delivery on one relay: the courier, the queues, and whether a round is
/// running.
///
/// Invariant: one round runs at a time. A request during a round is remembered and followed by one
/// more round, so no webhook that is due is overlooked. After `close` no round begins. The tests
/// are those of `WebhookDelivery.swift`.
final class WebhookDispatcher: Sendable {
    let queues = WebhookQueues()
    /// The outcomes of attempts that could not be written to the store.
    let unsettled = Unsettled<CompletedAttempt>()
    let deliveries = DeliveredWebhooks()

    private struct State {
        var courier: (any WebhookCourier)?
        /// Whether any website has a webhook endpoint, as far as this relay knows.
        var hasEndpoints = false
        var isRunning = false
        /// Whether a round was requested while one was running.
        var needsAnotherRound = false
        var isClosed = false
    }

    private let state: Mutex<State>

    init(_ courier: (any WebhookCourier)?) { state = Mutex(State(courier: courier)) }

    var courier: (any WebhookCourier)? { state.withLock { $0.courier } }
    var hasEndpoints: Bool { state.withLock { $0.hasEndpoints } }
    /// Whether webhooks are stopped.
    var isClosed: Bool { state.withLock { $0.isClosed } }

    func replace(_ courier: (any WebhookCourier)?) { state.withLock { $0.courier = courier } }
    func setHasEndpoints(hasEndpoints: Bool) { state.withLock { $0.hasEndpoints = hasEndpoints } }
    func close() { state.withLock { $0.isClosed = true } }

    /// Whether the caller must run a round now. If one is already running, another one will follow
    /// it.
    func beginRound() -> Bool {
        state.withLock { state in
            guard !state.isClosed, state.courier != nil else { return false }
            guard !state.isRunning else {
                state.needsAnotherRound = true
                return false
            }
            state.isRunning = true
            return true
        }
    }

    /// Ends a round; returns whether another round must follow.
    func needsAnotherRound() -> Bool {
        state.withLock { state in
            state.isRunning = state.needsAnotherRound && !state.isClosed
            state.needsAnotherRound = false
            return state.isRunning
        }
    }
}

/// The outcome of an attempt, kept until the store has it.
struct CompletedAttempt: Sendable {
    let row: WebhookRow
    let outcome: WebhookOutcome
    let settled: WebhookSettlement
    /// The operation of the first write. That write may have succeeded: a store that fails during a
    /// commit does not report the result.
    let operation: Operation

    /// The time for which a failed attempt is kept. Later its outcome says nothing about the
    /// endpoint any more.
    static let life = Duration.seconds(3600)

    /// Whether the outcome may be written now that the entry was leased again. A delivery always
    /// counts. A failure does not count if another relay has tried the webhook since, if an
    /// operator replayed it, or if its URL has changed.
    func holds(for row: WebhookRow, at now: Timestamp) -> Bool {
        if outcome.meaning == .delivered { return true }
        let attempted = self.row
        return now - settled.at <= Self.life && row.failures == attempted.failures
            && row.expiresAt == attempted.expiresAt
            && row.url == attempted.url
    }
}

/// The delivered webhooks that the store does not know yet. The store records those of one website
/// together: while it records some, others gather.
///
/// Invariant: for each website with a list here, one task takes from the list until it is empty.
final class DeliveredWebhooks: Sendable {
    /// The most webhooks that are recorded together.
    static let most = 100

    private let lists = Mutex<[WebsiteID: [CompletedAttempt]]>([:])

    /// Adds a delivered webhook. Returns whether the caller must record those of its website.
    func add(_ attempt: CompletedAttempt) -> Bool {
        lists.withLock { lists in
            let isFirst = lists[attempt.row.website] == nil
            lists[attempt.row.website, default: []].append(attempt)
            return isFirst
        }
    }

    /// Takes the webhooks to record next; nil if none is left. The caller then ends.
    func take(of website: WebsiteID) -> [CompletedAttempt]? {
        lists.withLock { lists in
            guard let all = lists[website], !all.isEmpty else {
                lists[website] = nil
                return nil
            }
            lists[website] = Array(all.dropFirst(Self.most))
            return Array(all.prefix(Self.most))
        }
    }
}
