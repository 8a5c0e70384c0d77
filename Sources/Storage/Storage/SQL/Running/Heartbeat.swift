import Domain
import Relay
import World

extension Store: HeartbeatStore {
    public func sendHeartbeat(_ relay: RelayID, at now: Timestamp) async throws(StoreFailure) -> [Heartbeat] {
        let script = Script(
            "heartbeat",
            writes: [
                moveHeartbeat(relay: .id(relay)),
                insertRelay(relay: .id(relay), now: .timestamp(now)),
            ],
            reads: [heartbeats()])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                var heartbeats: [Heartbeat] = []
                for row in rows[0] {
                    heartbeats.append(Heartbeat(relay: try row.id("id"), count: try row.integer("beat")))
                }
                return heartbeats
            })
    }
}

private let moveHeartbeat = Statement("UPDATE relay SET beat = beat + 1 WHERE id = :relay")

private let insertRelay = Statement(
    """
    INSERT INTO relay (id, beat, started_at) SELECT :relay, 0, :now /*M! FROM DUAL */
    WHERE NOT EXISTS (SELECT 1 FROM relay r WHERE r.id = :relay)
    """)

private let heartbeats = Statement("SELECT id, beat FROM relay")

extension Store {
    public func removeDeadRelay(_ relay: RelayID, at count: Int64?, now: Timestamp) async throws(StoreFailure) {
        let (id, count) = (SQLValue.id(relay), SQLValue.integer(count))
        let script = Script(
            "remove dead relay",
            writes: [
                holdRelay(relay: id, count: count),
                releaseEntries(now: .timestamp(now), relay: id, count: count),
                releaseTask(relay: id, count: count),
                dropRelay(relay: id, count: count),
            ])
        try await run(Query(script: script) { _ in () })
    }
}

/// Locks the relay's row until the end of the transaction, so that its heartbeat cannot move. The
/// relay is then dead for all of the following statements or for none.
private let holdRelay = Statement("UPDATE relay SET beat = beat WHERE \(deadRelay)")

/// Releases the dead relay's entries. A webhook's due time is in `webhook_due_at`, that of all other
/// entries in `due_at`.
private let releaseEntries = Statement(
    """
    UPDATE outbox SET due_at = CASE kind WHEN '\(WebhookRows.kind)' THEN due_at ELSE :now END,
    webhook_due_at = CASE kind WHEN '\(WebhookRows.kind)' THEN :now ELSE webhook_due_at END,
    holder = NULL, lease = NULL WHERE \(ofDeadRelay)
    """)

private let releaseTask = Statement("UPDATE task_lease SET holder = NULL WHERE \(ofDeadRelay)")

private let dropRelay = Statement("DELETE FROM relay WHERE \(deadRelay)")

/// The condition for the row of the relay, if its heartbeat has not moved. Without a count, the
/// relay is dead in any case.
private let deadRelay = "id = :relay AND (:count IS NULL OR beat = :count)"

/// The condition for rows that this relay holds.
private let ofDeadRelay =
    "holder = :relay AND (:count IS NULL OR EXISTS (SELECT 1 FROM relay r WHERE r.id = :relay AND r.beat = :count))"

extension Store {
    public func probe() async throws(StoreFailure) {
        try await probe(Script("probe", reads: [StoreStatus.countRelays()]))
    }
}
