import Domain
import Relay
import World

extension Store: HeartbeatStore {
    public func sendHeartbeat(_ relay: RelayID, at now: Timestamp) async throws(StoreFailure) -> [Heartbeat] {
        let script = Script(
            "beat",
            writes: [
                BoundStatement(moveBeat, .id(relay)),
                BoundStatement(firstBeat, .id(relay), .timestamp(now), .id(relay)),
            ],
            reads: [BoundStatement(beats)])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                var beats: [Heartbeat] = []
                for row in rows[0] { beats.append(Heartbeat(relay: try row.id(0), count: try row.integer(1))) }
                return beats
            })
    }

    public func removeDeadRelay(_ relay: RelayID, at count: Int64?, now: Timestamp) async throws(StoreFailure) {
        let count = count.map { SQLValue.integer($0) } ?? .null
        let (at, row) = (SQLValue.timestamp(now), [SQLValue.id(relay), count, count])
        let script = Script(
            "bury",
            writes: [
                BoundStatement(holdRelay, values: row),
                BoundStatement(freeEntries, values: [at, at, .id(relay), count] + row.dropLast()),
                BoundStatement(releaseTask, values: [.id(relay), count] + row.dropLast()),
                BoundStatement(dropRelay, values: row),
            ])
        try await run(Query(script: script) { _ in () })
    }

    public func probe() async throws(StoreFailure) {
        _ = try await run(Script("probe", reads: [BoundStatement(StoreStatus.countRelays)]))
    }
}

private let moveBeat = Statement("UPDATE relay SET beat = beat + 1 WHERE id = ?")
private let firstBeat = Statement(
    """
    INSERT INTO relay (id, beat, started_at) SELECT ?, 0, ? /*M! FROM DUAL */
    WHERE NOT EXISTS (SELECT 1 FROM relay r WHERE r.id = ?)
    """)
private let beats = Statement("SELECT id, beat FROM relay")

private let thatRelay = "id = ? AND (? IS NULL OR beat = ?)"
/// Locks the relay's row until the end of the transaction, so that its heartbeat cannot move. The
/// relay is then dead for all of the following statements or for none.
private let holdRelay = Statement("UPDATE relay SET beat = beat WHERE " + thatRelay)
private let ofThatRelay = " holder = ? AND (? IS NULL OR EXISTS (SELECT 1 FROM relay r WHERE r.id = ? AND r.beat = ?))"

/// Releases the dead relay's entries. A webhook's due time is in `webhook_due_at`, that of all other
/// entries in `due_at`.
private let freeEntries = Statement(
    """
    UPDATE outbox SET due_at = CASE kind WHEN '\(WebhookRows.kind)' THEN due_at ELSE ? END,
    webhook_due_at = CASE kind WHEN '\(WebhookRows.kind)' THEN ? ELSE webhook_due_at END, holder = NULL, lease = NULL WHERE
    """ + ofThatRelay)
private let releaseTask = Statement("UPDATE task_lease SET holder = NULL WHERE" + ofThatRelay)
private let dropRelay = Statement("DELETE FROM relay WHERE " + thatRelay)
