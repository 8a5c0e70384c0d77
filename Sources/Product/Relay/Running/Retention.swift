import Domain
import Log
import Synchronization
import World

/// The store port of retention: the deletion of rows after their retention period, so that the
/// store does not grow for ever.
///
/// Once a minute each relay tries to delete expired rows of every kind, at most 500 in each
/// transaction, so that requests run in between. Rows are first searched by a read, which holds no
/// lock, and then deleted by a script.
///
/// Invariant: one relay deletes at a time. A row of `chore` names it, and every DELETE is
/// conditional on that row. The relay keeps the chore until it stops or dies. A relay that was
/// halted therefore deletes nothing if another one has taken the chore.
///
/// Failure modes: old rows that must stay would be read again in every run. So the search for
/// challenges and audit rows continues where the last one ended (`RetentionCursors`), and starts
/// from the beginning once an hour. A row may change between search and deletion: an operator may
/// replay a dead letter. So the DELETE of outbox entries repeats the condition.
///
/// Tested in `RetentionTests.swift`.
public protocol RetentionStore: Sendable {
    /// Deletes some expired rows if this relay has the chore, or if no other live relay has it.
    ///
    /// - Returns: nil if another relay has the chore.
    func drop(_ rubbish: ExpiredRows, by relay: RelayID) async throws(StoreFailure) -> DeletionResult?
}

/// A request to delete rows of one kind that are older than a moment and lie beyond a cursor.
public struct ExpiredRows: Sendable {
    public enum Kind: String, Sendable, CaseIterable {
        /// Stored answers to requests under an `Idempotency-Key`.
        case answers
        /// Operation secrets, from which repeated requests are answered.
        case secrets
        /// The counters by which text messages are limited.
        case smsUsage = "tallies"
        /// Dead letters of the outbox.
        case dead
        /// Webhooks in the outbox that their website did not accept before they expired.
        case webhooks = "webhooks"
        /// Activation codes, a day after they expired.
        case activations
        /// Codes that were sent to confirm an address.
        case codes
        /// Temporary codes that have expired, which the audit then records.
        case temporary
        /// Challenges, with their steps and their sent codes. A challenge stays while it is open,
        /// while an outbox entry refers to it, or while a phone or factor waits for its approval.
        case challenges
        /// Notices, fetched or not.
        case notices
        /// The serial numbers of certificates that have expired.
        case certificates
        /// Former certificates of websites' keys that have expired.
        case websiteCertificates = "website_certificates"
        /// Recoveries that ended or expired long ago.
        case recoveries
        case audit
        /// The counts of what a website used on a day.
        case usage
    }

    public let kind: Kind
    public let before: Timestamp
    /// The cursor: where the last search ended; 0 is the beginning.
    public let mark: Int64
    /// The most rows that one search reads.
    public let limit: Int

    public init(_ kind: Kind, before: Timestamp, mark: Int64 = 0, limit: Int = 500) {
        self.kind = kind
        self.before = before
        self.mark = mark
        self.limit = limit
    }
}

/// The outcome of one search and deletion.
public struct DeletionResult: Sendable, Equatable {
    /// The number of deleted rows.
    public let count: Int
    /// The cursor at which the next search begins.
    public let mark: Int64
    /// Whether no expired rows are left beyond the cursor.
    public let isLast: Bool
    /// The writers of the audit whose old rows stay, because somebody has changed their chains.
    public let stuck: [String]

    public init(count: Int, mark: Int64 = 0, isLast: Bool, stuck: [String] = []) {
        self.count = count
        self.mark = mark
        self.isLast = isLast
        self.stuck = stuck
    }
}

/// The cursors of the kinds in which many old rows may have to stay. With them, a search need not
/// start from the beginning each time.
struct RetentionCursors: Sendable {
    /// The time for which the cursors are used. Rows that had to stay may be deletable after that
    /// time, so the search then starts from the beginning.
    static let fresh = Duration.seconds(3600)

    private var marks: [ExpiredRows.Kind: Int64] = [:]
    private var since: Instant?

    /// Resets the cursors if they are too old. To be called when a round begins.
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

/// The retention cursors that all loops share.
final class RetentionState: Sendable {
    private let marks = Mutex(RetentionCursors())
    private let reported = Mutex<Set<String>>([])

    func begin(at now: Instant) { marks.withLock { $0.begin(at: now) } }
    func mark(of kind: ExpiredRows.Kind) -> Int64 { marks.withLock { $0[kind] } }
    func record(_ mark: Int64, of kind: ExpiredRows.Kind) { marks.withLock { $0[kind] = mark } }

    /// Returns the writers that were not reported before.
    func new(_ stuck: [String]) -> [String] {
        stuck.filter { writer in reported.withLock { $0.insert(writer).inserted } }
    }
}

extension Relay {
    /// Records how much waits in the outbox, and deletes expired rows of every kind. The daemon's
    /// timer calls it every minute.
    public func deleteExpiredRows() async {
        let backlog = try? await withStore("retention") { () async throws(StoreFailure) in
            try await store.backlog(at: time.now())
        }
        if let backlog { metrics.recordBacklog(backlog, at: time.now()) }
        await recordWebhookBacklog()
        retentionState.begin(at: time.instant())
        for kind in ExpiredRows.Kind.allCases {
            guard await drop(kind) else { return }
        }
    }

    /// Deletes all expired rows of one kind. Returns false if another relay has the chore, or if
    /// the store failed.
    private func drop(_ kind: ExpiredRows.Kind) async -> Bool {
        let (begun, before) = (time.instant(), oldest(kind))
        var count = 0
        var isLast = false
        while !isLast {
            // Each pass is a transaction, so that requests can run in between.
            let rubbish = ExpiredRows(kind, before: before, mark: retentionState.mark(of: kind))
            let dropped = try? await withStore("retention") { () async throws(StoreFailure) in
                try await store.drop(rubbish, by: id)
            }
            guard let dropped else { return false }
            retentionState.record(dropped.mark, of: kind)
            for writer in retentionState.new(dropped.stuck) {
                log.error("retention.stuck", [.row: "audit_writer \(writer)"])
            }
            metrics.rowsDeleted(kind, dropped.count)
            count += dropped.count
            isLast = dropped.isLast
        }
        let fields: LogFields = [
            .kind: kind.rawValue, .count: count, .milliseconds: (time.instant() - begun).wholeMilliseconds,
        ]
        // The website did not accept these webhooks at any attempt before they expired.
        if kind == .webhooks, count > 0 { log.warning("webhook.expired", [.count: count]) }
        if count > 0 { log.info("retention.done", fields) } else { log.debug("retention.done", fields) }
        return true
    }

    /// Returns the moment before which rows of a kind are deleted.
    private func oldest(_ kind: ExpiredRows.Kind) -> Timestamp {
        let now = time.now()
        return switch kind {
        case .answers, .smsUsage: now - Self.keptFor
        case .dead: now - Self.deadFor
        case .webhooks, .secrets, .certificates, .websiteCertificates, .temporary: now
        case .activations: now - .seconds(86_400)
        case .codes, .challenges, .notices, .recoveries: now - .seconds(86_400 * adjustable.retention.logins)
        case .audit: now - .seconds(86_400 * adjustable.retention.audit)
        case .usage: now - .seconds(86_400 * adjustable.retention.usage)
        }
    }
}
