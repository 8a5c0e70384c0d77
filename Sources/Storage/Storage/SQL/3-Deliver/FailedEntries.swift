import Domain
import Relay
import World

extension Store {
    /// Reads leased entries together. If a single entry may have caused a failure, it reads each
    /// entry separately.
    func read<Row>(
        _ leased: [OutboxEntryID], together: Query<[Row]>, each: (OutboxEntryID) -> Query<[Row]>
    ) async throws(StoreFailure) -> LeasedRows<Row> {
        guard !leased.isEmpty else { return LeasedRows() }
        do throws(StoreFailure) {
            return LeasedRows(try await run(together))
        } catch {
            guard error.mayBeOfOneRow else { throw error }
        }
        var found = LeasedRows<Row>()
        for id in leased {
            do throws(StoreFailure) {
                found.rows += try await run(each(id))
            } catch {
                guard error.mayBeOfOneRow else { throw error }
                found.failed.append(FailedEntry(id, error))
            }
        }
        return found
    }

    public func setAside(_ entry: OutboxEntryID, by relay: RelayID, at now: Timestamp) async throws(StoreFailure) {
        let write: BoundStatement
        if try await isForged(entry) {
            write = FailedEntries.dead(entry, by: relay, at: now)
        } else {
            let pause = try await run(FailedEntries.pause(entry, at: now))
            write = FailedEntries.waiting(entry, by: relay, until: now + pause)
        }
        try await run(Query(script: Script("set aside", writes: [write])) { _ in () })
    }

    /// Whether no key has signed the entry as it is. An entry under a key that this relay does not
    /// know may be genuine for another relay.
    private func isForged(_ entry: OutboxEntryID) async throws(StoreFailure) -> Bool {
        guard let authenticator = rowAuthenticator else { return false }
        let row = try await run(RowQueries.row(of: .outbox, key: [.id(entry)], with: authenticator))
        return row.map { [.unsigned, .changed].contains($0.verdict) } ?? false
    }
}

/// Statements that set entries aside, so that they do not stop others. They change only entries
/// that this relay or no relay holds. If another relay has leased the entry meanwhile, that relay
/// continues with it.
enum FailedEntries {
    /// The reason of the dead letter, for operators.
    private static let forged = "forged"

    private static let shortestPause = Duration.seconds(30)
    private static let longestPause = Duration.seconds(3600)

    static func dead(_ entry: OutboxEntryID, by relay: RelayID, at now: Timestamp) -> BoundStatement {
        die(now: .timestamp(now), reason: .text(forged), entry: .id(entry), relay: .id(relay))
    }

    private static let die = Statement(
        """
        UPDATE outbox SET dead_at = :now, reason = :reason, due_at = NULL, webhook_due_at = NULL, holder = NULL,
        lease = NULL
        WHERE \(isOurs)
        """)

    private static let isOurs = "id = :entry AND dead_at IS NULL AND \(RetriedEntries.isOurs)"

    static func waiting(_ entry: OutboxEntryID, by relay: RelayID, until due: Timestamp) -> BoundStatement {
        wait(dueAt: .timestamp(due), entry: .id(entry), relay: .id(relay))
    }

    private static let wait = Statement(
        """
        UPDATE outbox SET due_at = CASE kind WHEN '\(WebhookRows.kind)' THEN due_at ELSE :dueAt END,
        webhook_due_at = CASE kind WHEN '\(WebhookRows.kind)' THEN :dueAt ELSE webhook_due_at END, holder = NULL,
        lease = NULL
        WHERE \(isOurs)
        """)

    /// Reads how long an entry waits until an operator has repaired the rows on which it relies.
    /// The pause grows each time. A webhook, which has few attempts, does not use them up: it waits
    /// as long again as it has existed.
    static func pause(_ entry: OutboxEntryID, at now: Timestamp) -> Query<Duration> {
        Query(script: Script("set aside", reads: [tries(entry: .id(entry))])) { rows in
            // The values only determine the pause, so they need no check.
            let attempts = (try? rows[0].first?.integer("attempts")) ?? 0
            let createdAt = (try? rows[0].first?.optionalTimestamp("created_at")) ?? nil
            let pause = createdAt.map { now - $0 } ?? shortestPause * (1 << Int(min(max(attempts - 1, 0), 7)))
            return min(max(pause, shortestPause), longestPause)
        }
    }

    private static let tries = Statement("SELECT attempts, created_at FROM outbox WHERE id = :entry")
}
