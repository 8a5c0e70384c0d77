import Domain
import Relay
import World

extension Store: KeepStore {
    public func beat(_ relay: RelayID, at now: Timestamp) async throws(StoreFailure) -> [Beat] {
        let script = Script(
            "beat",
            writes: [Step(moveBeat, .id(relay)), Step(firstBeat, .id(relay), .moment(now), .id(relay))],
            reads: [Step(beats)])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                var beats: [Beat] = []
                for row in rows[0] { beats.append(Beat(relay: try row.id(0), count: try row.integer(1))) }
                return beats
            })
    }

    public func bury(_ relay: RelayID, at now: Timestamp) async throws(StoreFailure) {
        let script = Script(
            "bury", writes: [Step(freeErrands, .moment(now), .id(relay)), Step(dropRelay, .id(relay))])
        try await run(Query(script: script) { _ in () })
    }

    public func dropKept(before: Timestamp) async throws(StoreFailure) {
        let script = Script(
            "tidy",
            writes: [Step(dropOldAnswers, .moment(before)), TextTallies.drop(before: before)],
            reads: [Step(oldAnswer, .moment(before))])
        // One transaction after the other, so that requests come in between.
        while try await run(Query(script: script) { rows in rows.first?.isEmpty == false }) {}
    }

    public func probe() async throws(StoreFailure) {
        _ = try await run(Script("probe", reads: [Step(StoreStatus.countRelays)]))
    }
}

private let moveBeat = Statement("UPDATE relay SET beat = beat + 1 WHERE id = ?")
private let firstBeat = Statement(
    """
    INSERT INTO relay (id, beat, started_at) SELECT ?, 0, ? /*M! FROM DUAL */
    WHERE NOT EXISTS (SELECT 1 FROM relay r WHERE r.id = ?)
    """)
private let beats = Statement("SELECT id, beat FROM relay")

private let freeErrands = Statement("UPDATE outbox SET holder = NULL, claim = NULL, due_at = ? WHERE holder = ?")
private let dropRelay = Statement("DELETE FROM relay WHERE id = ?")

private let dropOldAnswers = Statement(
    """
    DELETE FROM idempotency WHERE
    /*M! created_at < ? ORDER BY created_at LIMIT 500 */
    /*S! rowid IN (SELECT rowid FROM idempotency WHERE created_at < ? ORDER BY created_at LIMIT 500) */
    """)
private let oldAnswer = Statement("SELECT 1 FROM idempotency WHERE created_at < ? LIMIT 1")
