import Domain
import Relay
import World

extension Store {
    /// Reads leased entries together. If a single entry may have caused a failure, it reads each
    /// entry separately.
    func read<Row>(
        _ claimed: [OutboxEntryID], together: Query<[Row]>, each: (OutboxEntryID) -> Query<[Row]>
    ) async throws(StoreFailure) -> ClaimedRows<Row> {
        guard !claimed.isEmpty else { return ClaimedRows() }
        do throws(StoreFailure) {
            return ClaimedRows(try await run(together))
        } catch {
            guard error.mayBeOfOneRow else { throw error }
        }
        var found = ClaimedRows<Row>()
        for id in claimed {
            do throws(StoreFailure) {
                found.rows += try await run(each(id))
            } catch {
                guard error.mayBeOfOneRow else { throw error }
                found.failed.append(FailedEntry(id, error))
            }
        }
        return found
    }

    public func setAside(_ errand: OutboxEntryID, by relay: RelayID, at now: Timestamp) async throws(StoreFailure) {
        let step: BoundStatement
        if try await isForged(errand) {
            step = FailedEntries.dead(errand, by: relay, at: now)
        } else {
            let pause = try await run(FailedEntries.pause(errand, at: now))
            step = FailedEntries.waiting(errand, by: relay, until: now + pause)
        }
        try await run(Query(script: Script("set aside", writes: [step])) { _ in () })
    }

    /// Whether no key has signed the entry as it is. An entry under a key that this relay does not
    /// know may be genuine for another relay.
    private func isForged(_ errand: OutboxEntryID) async throws(StoreFailure) -> Bool {
        guard let authenticator = rowAuthenticator else { return false }
        let row = try await run(RowQueries.row(of: .outbox, key: [.id(errand)], with: authenticator))
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

    static func dead(_ errand: OutboxEntryID, by relay: RelayID, at now: Timestamp) -> BoundStatement {
        BoundStatement(die, .timestamp(now), .text(forged), .id(errand), .id(relay))
    }

    static func waiting(_ errand: OutboxEntryID, by relay: RelayID, until due: Timestamp) -> BoundStatement {
        BoundStatement(wait, .timestamp(due), .timestamp(due), .id(errand), .id(relay))
    }

    /// Reads how long an entry waits until an operator has repaired the rows on which it relies.
    /// The pause grows each time. A webhook, which has few attempts, does not use them up: it waits
    /// as long again as it has existed.
    static func pause(_ errand: OutboxEntryID, at now: Timestamp) -> Query<Duration> {
        Query(script: Script("set aside", reads: [BoundStatement(tries, .id(errand))])) { rows in
            // The values only determine the pause, so they need no check.
            let attempts = (try? rows[0].first?.integer(0)) ?? 0
            let createdAt = (try? rows[0].first?.optionalTimestamp(1)) ?? nil
            let pause = createdAt.map { now - $0 } ?? shortestPause * (1 << Int(min(max(attempts - 1, 0), 7)))
            return min(max(pause, shortestPause), longestPause)
        }
    }
}

private let tries = Statement("SELECT attempts, created_at FROM outbox WHERE id = ?")

private let ours = " WHERE id = ? AND dead_at IS NULL AND" + RetriedEntries.isOurs

private let die = Statement(
    """
    UPDATE outbox SET dead_at = ?, reason = ?, due_at = NULL, webhook_due_at = NULL, holder = NULL, lease = NULL
    """ + ours)

private let wait = Statement(
    """
    UPDATE outbox SET due_at = CASE kind WHEN '\(WebhookRows.kind)' THEN due_at ELSE ? END,
    webhook_due_at = CASE kind WHEN '\(WebhookRows.kind)' THEN ? ELSE webhook_due_at END, holder = NULL, lease = NULL
    """ + ours)
