import Bytes
import Domain
import Log
import Relay
import Storage
import Synchronization
import World

/// The audit rows about forgeries that this relay has found: `row.forged` and `audit.tampered`.
///
/// Purpose: the log has a line for each discovery, but logs are deleted, and the audit stays.
///
/// Invariant: each hour has at most one row of the audit for each row that was forged and each reason,
/// and at most `mostOfTable` for each table. So an attacker who changes rows without end cannot fill the audit, nor
/// hide a change of one table behind changes of another one. A row of the audit itself counts in the same
/// way, and nothing here reads the audit, so a discovery causes no further one.
///
/// Failures: the store cannot write. The log has `audit.unrecorded`, and the line about the discovery.
///
/// `ForgeryRecordTests.swift` tests it.
final class ForgeryRecord: Sendable {
    static let period = Duration.seconds(3_600)
    static let mostOfTable = 20

    private struct State {
        /// The end of the hour; nil before the first discovery.
        var end: Instant?
        /// The rows that were recorded, with the reasons.
        var discoveries: Set<String> = []
        var counts: [String: Int] = [:]
    }

    private let store: Store
    private let newOperation: @Sendable () -> Operation
    private let time: any TimeSource
    private let log: Log
    private let state = Mutex(State())

    init(
        _ store: Store, time: any TimeSource = SystemTime(), log: Log,
        newOperation: @escaping @Sendable () -> Operation
    ) {
        self.store = store
        self.time = time
        self.log = log
        self.newOperation = newOperation
    }

    /// Records a discovery, unless the audit has it already. It must be called on a loop.
    ///
    /// - Parameter row: the table and the key of the row, as operators write them.
    func record(_ event: String, row: String, reason: String? = nil) async {
        guard let isLast = admit(row, reason) else { return }
        var note = reason.map { "\(row): \($0)" } ?? row
        if isLast { note += "; the log alone has further rows of this table in this hour" }
        let query = ProgramEvents.record(
            event, about: Self.subject(of: row), outcome: Self.table(of: row), note: note, at: time.now(),
            as: newOperation())
        await Actor.run(nil) {
            do throws(StoreFailure) {
                try await store.run(query)
            } catch {
                log.warning("audit.unrecorded", [.name: event, .error: "\(error)"])
                takeBack(row, reason)
            }
        }
    }

    /// Counts a discovery. Returns nil if the audit gets no row of it, and otherwise whether it gets no
    /// further one of the table in this hour.
    func admit(_ row: String, _ reason: String? = nil) -> Bool? {
        let now = time.instant()
        return state.withLock { state in
            if state.end.map({ now >= $0 }) ?? true { state = State(end: now + Self.period) }
            let table = Self.table(of: row)
            let count = state.counts[table, default: 0]
            let isNew = count < Self.mostOfTable && state.discoveries.insert(Self.discovery(row, reason)).inserted
            guard isNew else { return nil }
            state.counts[table] = count + 1
            return count + 1 == Self.mostOfTable
        }
    }

    /// Forgets a discovery that could not be written, so that the next one is.
    private func takeBack(_ row: String, _ reason: String?) {
        state.withLock { state in
            guard state.discoveries.remove(Self.discovery(row, reason)) != nil else { return }
            state.counts[Self.table(of: row), default: 1] -= 1
        }
    }

    private static func discovery(_ row: String, _ reason: String?) -> String { "\(row): \(reason ?? "")" }

    private static func table(of row: String) -> String { String(row.prefix { $0 != " " }.prefix(32)) }

    /// The subject, if the key of the row is its id. Other columns may be forged.
    private static func subject(of row: String) -> AuditSubject {
        let words = row.split(separator: " ")
        guard words.count == 2 else { return AuditSubject() }
        let key = String(words[1])
        return switch words[0] {
        case "website": AuditSubject(website: WebsiteID(key))
        case "user": AuditSubject(user: UserID(key))
        case "device", "device_report", "attestation": AuditSubject(device: DeviceID(key))
        default: AuditSubject()
        }
    }
}
