import Domain
import Log
import Synchronization
import World

/// What a relay does so that the store does not grow for ever. One relay does it at a time: whoever has the chore keeps it
/// until it leaves or dies.
public protocol RetentionStore: Sendable {
    /// Drops some of it, where this relay has the chore or nobody else who lives. Nil where another has it.
    func drop(_ rubbish: ExpiredRows, by relay: RelayID) async throws(StoreFailure) -> DeletionResult?
}

/// Rows that nobody needs any more: those of one kind from before that moment, and beyond what was looked at already.
public struct ExpiredRows: Sendable {
    public enum Kind: String, Sendable, CaseIterable {
        /// To requests under an `Idempotency-Key`.
        case answers
        /// Secrets of operations, from which repeated requests are answered.
        case secrets
        /// By which text messages are limited.
        case smsUsage = "tallies"
        /// Of the outbox, which nobody tries any more.
        case dead
        /// Of the outbox, that no website has taken in time.
        case webhooks = "callbacks"
        case activations
        /// That were sent to confirm an address.
        case codes
        /// With their steps and their codes. One stays while it is open, while a row of the outbox is about it, or while a
        /// phone or factor waits for it.
        case challenges
        case audit
    }

    public let kind: Kind
    public let before: Timestamp
    /// Where the last look ended; 0 is the beginning.
    public let mark: Int64
    public let limit: Int

    public init(_ kind: Kind, before: Timestamp, mark: Int64 = 0, limit: Int = 500) {
        self.kind = kind
        self.before = before
        self.mark = mark
        self.limit = limit
    }
}

/// What one look came to.
public struct DeletionResult: Sendable, Equatable {
    public let count: Int
    /// Where the next one begins.
    public let mark: Int64
    public let isLast: Bool

    public init(count: Int, mark: Int64 = 0, isLast: Bool) {
        self.count = count
        self.mark = mark
        self.isLast = isLast
    }
}

/// Where the looks at kinds of which much may stay have ended: they are not begun anew each time.
struct RetentionCursors: Sendable {
    /// What had to stay may go later.
    static let fresh = Duration.seconds(3600)

    private var marks: [ExpiredRows.Kind: Int64] = [:]
    private var since: Instant?

    /// To be called when a round begins.
    mutating func begin(at now: Instant) {
        if let since, now - since < Self.fresh { return }
        marks = [:]
        since = now
    }

    subscript(kind: ExpiredRows.Kind) -> Int64 {
        get { marks[kind] ?? 0 }
        set { marks[kind] = newValue }
    }
}

final class RetentionState: Sendable {
    private let marks = Mutex(RetentionCursors())

    func begin(at now: Instant) { marks.withLock { $0.begin(at: now) } }
    func mark(of kind: ExpiredRows.Kind) -> Int64 { marks.withLock { $0[kind] } }
    func record(_ mark: Int64, of kind: ExpiredRows.Kind) { marks.withLock { $0[kind] = mark } }
}

extension Relay {
    /// Called by the daemon's timer every minute.
    public func deleteExpiredRows() async {
        let backlog = try? await withStore("tidy") { () async throws(StoreFailure) in
            try await store.backlog(at: time.now())
        }
        if let backlog { metrics.recordBacklog(backlog, at: time.now()) }
        await recordWebhookBacklog()
        retentionState.begin(at: time.instant())
        for kind in ExpiredRows.Kind.allCases {
            guard await drop(kind) else { return }
        }
    }

    /// False where it is not this relay's to do, or cannot be done now.
    private func drop(_ kind: ExpiredRows.Kind) async -> Bool {
        let (begun, before) = (time.instant(), oldest(kind))
        var count = 0
        var isLast = false
        while !isLast {
            // One transaction after the other, so that requests come in between.
            let rubbish = ExpiredRows(kind, before: before, mark: retentionState.mark(of: kind))
            let dropped = try? await withStore("tidy") { () async throws(StoreFailure) in
                try await store.drop(rubbish, by: id)
            }
            guard let dropped else { return false }
            retentionState.record(dropped.mark, of: kind)
            metrics.rowsDeleted(kind, dropped.count)
            count += dropped.count
            isLast = dropped.isLast
        }
        let fields: LogFields = [
            .kind: kind.rawValue, .count: count, .milliseconds: (time.instant() - begun).wholeMilliseconds,
        ]
        // As long as they were tried nobody took them.
        if kind == .webhooks, count > 0 { log.warning("callback.expired", [.count: count]) }
        if count > 0 { log.info("tidy.done", fields) } else { log.debug("tidy.done", fields) }
        return true
    }

    /// What is older goes.
    private func oldest(_ kind: ExpiredRows.Kind) -> Timestamp {
        let now = time.now()
        return switch kind {
        case .answers, .smsUsage: now - Self.keptFor
        case .dead: now - Self.deadFor
        case .webhooks, .secrets: now
        case .activations: now - .seconds(86_400)
        case .codes, .challenges: now - .seconds(86_400 * settings.retention.logins)
        case .audit: now - .seconds(86_400 * settings.retention.audit)
        }
    }
}
