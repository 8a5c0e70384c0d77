import Domain
import Relay
import World

extension Store: IdempotencyStore {
    public func begin(
        _ repeatable: IdempotentRequest, as operation: OperationID, relay: RelayID, at now: Timestamp
    ) async throws(StoreFailure) -> IdempotencyRow? {
        let script = Script(
            "idempotency", rows: [.idempotency(repeatable.website, repeatable.digest).signed],
            writes: [
                BoundStatement(
                    insertRow, .blob(repeatable.digest), .blob(repeatable.fingerprint), .id(operation), .id(relay),
                    .timestamp(now), .id(repeatable.website))
            ], reads: [BoundStatement(readRow, .id(repeatable.website), .blob(repeatable.digest))])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                guard let row = rows[0].first else { return nil }
                return IdempotencyRow(
                    fingerprint: try row.blob(0), state: try row.word(1), operation: try row.id(2),
                    holder: try row.optionalID(6), isHeld: try row.bool(3),
                    status: try row.optionalInteger(4).map { Int($0) }, sealed: try row.optionalBlob(5),
                    createdAt: try row.timestamp(7))
            })
    }

    public func resume(
        _ repeatable: IdempotentRequest, as operation: OperationID, relay: RelayID
    ) async throws(StoreFailure) -> Bool {
        let key: [SQLValue] = [.id(repeatable.website), .blob(repeatable.digest), .id(operation)]
        let script = Script(
            "idempotency", rows: [.idempotency(repeatable.website, repeatable.digest).signed],
            writes: [BoundStatement(takeRow, values: [.id(relay)] + key)],
            reads: [BoundStatement(isMine, values: key + [.id(relay)])])
        return try await run(Query(script: script) { rows in !rows[0].isEmpty })
    }

    public func finish(
        _ repeatable: IdempotentRequest, as operation: OperationID, _ kept: StoredResponse
    ) async throws(StoreFailure) {
        var writes = [
            BoundStatement(
                finishRow, .word(kept.state), .integer(Int64(kept.status)), .blob(kept.sealed),
                .id(repeatable.website), .blob(repeatable.digest), .id(operation))
        ]
        // After the answer was shown once, nobody needs the secret any more.
        if kept.state == .shown { writes.append(OperationSecrets.dropped(operation)) }
        try await run(Query(script: Script("idempotency", writes: writes)) { _ in () })
    }

    public func release(_ ended: [OperationID: IdempotentRequest]) async throws(StoreFailure) {
        let script = Script(
            "idempotency",
            writes: ended.map { operation, repeatable in
                BoundStatement(freeRow, .id(repeatable.website), .blob(repeatable.digest), .id(operation))
            })
        try await run(Query(script: script) { _ in () })
    }
}

private let insertRow = Statement(
    into: .idempotency, once: true,
    """
    INSERT INTO idempotency (website_id, digest, fingerprint, state, operation, holder, created_at)
    SELECT w.id, ?, ?, 'running', ?, ?, ? FROM website w WHERE w.id = ? AND w.state = 'active'
    """)

private let readRow = Statement(
    """
    SELECT i.fingerprint, i.state, i.operation, EXISTS (SELECT 1 FROM relay r WHERE r.id = i.holder), i.status, i.answer,
    i.holder, i.created_at
    FROM idempotency i WHERE i.website_id = ? AND i.digest = ?
    """)

private let rowOfKey = " WHERE website_id = ? AND digest = ? AND operation = ? AND state = 'running'"

private let takeRow = Statement(
    "UPDATE idempotency SET holder = ?" + rowOfKey
        + " AND NOT EXISTS (SELECT 1 FROM relay r WHERE r.id = idempotency.holder)")

private let isMine = Statement("SELECT 1 FROM idempotency" + rowOfKey + " AND holder = ?")

private let finishRow = Statement("UPDATE idempotency SET state = ?, status = ?, answer = ?, holder = NULL" + rowOfKey)

private let freeRow = Statement("UPDATE idempotency SET holder = NULL" + rowOfKey)
