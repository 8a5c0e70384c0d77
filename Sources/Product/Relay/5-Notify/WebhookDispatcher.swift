import Domain
import Synchronization
import Webhooks
import World

/// What a relay has in hand of what websites are told by themselves.
final class WebhookDispatcher: Sendable {
    let lines = WebhookQueues()
    /// What came of calls while the store was away.
    let unsettled = Unsettled<CompletedAttempt>()

    private struct State {
        var courier: (any WebhookCourier)?
        /// Whether any website has a callback, as far as is known.
        var hasEndpoints = false
        var isRunning = false
        /// Something came up while a round was running.
        var needsAnotherRound = false
        var isClosed = false
    }

    private let state: Mutex<State>

    init(_ courier: (any WebhookCourier)?) { state = Mutex(State(courier: courier)) }

    var courier: (any WebhookCourier)? { state.withLock { $0.courier } }
    var hasEndpoints: Bool { state.withLock { $0.hasEndpoints } }
    /// Nothing leaves any more.
    var isClosed: Bool { state.withLock { $0.isClosed } }

    func replace(_ courier: (any WebhookCourier)?) { state.withLock { $0.courier = courier } }
    func setHasEndpoints(hasEndpoints: Bool) { state.withLock { $0.hasEndpoints = hasEndpoints } }
    func close() { state.withLock { $0.isClosed = true } }

    /// Whether to begin a round. Where one is running, it will be followed by another.
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

    /// Whether to go on with another round.
    func needsAnotherRound() -> Bool {
        state.withLock { state in
            state.isRunning = state.needsAnotherRound && !state.isClosed
            state.needsAnotherRound = false
            return state.isRunning
        }
    }
}

/// What became of a call, until the store has it too.
struct CompletedAttempt: Sendable {
    let row: WebhookRow
    let outcome: WebhookOutcome
    let settled: WebhookSettlement
    /// It may be written already: a store that goes away at a commit does not say.
    let operation: OperationID

    /// So long it is kept that something failed. Later, what it says of the website is no news any more.
    static let life = Duration.seconds(3600)

    /// Whether it is to be written, now that the turn of its row has come again. What has arrived has; but what failed is
    /// of no use where the row has been tried by others meanwhile, was given up and is replayed, or goes elsewhere.
    func holds(for row: WebhookRow, at now: Timestamp) -> Bool {
        if outcome.meaning == .delivered { return true }
        let tried = self.row
        return now - settled.at <= Self.life && row.failures == tried.failures && row.expiresAt == tried.expiresAt
            && row.url == tried.url
    }
}
