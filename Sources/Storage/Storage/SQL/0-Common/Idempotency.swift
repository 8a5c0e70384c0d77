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
                insertRow(
                    digest: .blob(repeatable.digest), fingerprint: .blob(repeatable.fingerprint),
                    operation: .id(operation), relay: .id(relay), now: .timestamp(now),
                    website: .id(repeatable.website))
            ], reads: [readRow(website: .id(repeatable.website), digest: .blob(repeatable.digest))])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                guard let row = rows[0].first else { return nil }
                return IdempotencyRow(
                    fingerprint: try row.blob("fingerprint"), state: try row.word("state"),
                    operation: try row.id("operation"), holder: try row.optionalID("holder"),
                    isHeld: try row.bool("is_held"), status: try row.optionalInteger("status").map { Int($0) },
                    sealed: try row.optionalBlob("answer"), createdAt: try row.timestamp("created_at"))
            })
    }
}

private let insertRow = Statement(
    into: .idempotency, once: true,
    """
    INSERT INTO idempotency (website_id, digest, fingerprint, state, operation, holder, created_at)
    SELECT w.id, :digest, :fingerprint, 'running', :operation, :relay, :now
    FROM website w WHERE w.id = :website AND w.state = 'active'
    """)

private let readRow = Statement(
    """
    SELECT i.fingerprint, i.state, i.operation, EXISTS (SELECT 1 FROM relay r WHERE r.id = i.holder) AS is_held,
    i.status, i.answer, i.holder, i.created_at
    FROM idempotency i WHERE i.website_id = :website AND i.digest = :digest
    """)

extension Store {
    public func resume(
        _ repeatable: IdempotentRequest, as operation: OperationID, relay: RelayID
    ) async throws(StoreFailure) -> Bool {
        let website = SQLValue.id(repeatable.website)
        let digest = SQLValue.blob(repeatable.digest)
        let script = Script(
            "idempotency", rows: [.idempotency(repeatable.website, repeatable.digest).signed],
            writes: [takeRow(relay: .id(relay), website: website, digest: digest, operation: .id(operation))],
            reads: [isOurs(website: website, digest: digest, operation: .id(operation), relay: .id(relay))])
        return try await run(Query(script: script) { rows in !rows[0].isEmpty })
    }
}

private let takeRow = Statement(
    """
    UPDATE idempotency SET holder = :relay WHERE \(isRunning)
    AND NOT EXISTS (SELECT 1 FROM relay r WHERE r.id = idempotency.holder)
    """)

private let isOurs = Statement("SELECT 1 FROM idempotency WHERE \(isRunning) AND holder = :relay")

/// The condition for the row of a running request.
private let isRunning = "website_id = :website AND digest = :digest AND operation = :operation AND state = 'running'"

extension Store {
    public func finish(
        _ repeatable: IdempotentRequest, as operation: OperationID, _ kept: StoredResponse
    ) async throws(StoreFailure) {
        var writes = [
            finishRow(
                state: .word(kept.state), status: .integer(Int64(kept.status)), answer: .blob(kept.sealed),
                website: .id(repeatable.website), digest: .blob(repeatable.digest), operation: .id(operation))
        ]
        // After the answer was shown once, nobody needs the secret any more.
        if kept.state == .shown { writes.append(OperationSecrets.dropped(operation)) }
        try await run(Query(script: Script("idempotency", writes: writes)) { _ in () })
    }
}

private let finishRow = Statement(
    """
    UPDATE idempotency SET state = :state, status = :status, answer = :answer, holder = NULL WHERE \(isRunning)
    """)

extension Store {
    public func release(_ ended: [OperationID: IdempotentRequest]) async throws(StoreFailure) {
        let script = Script(
            "idempotency",
            writes: ended.map { operation, repeatable in
                freeRow(
                    website: .id(repeatable.website), digest: .blob(repeatable.digest), operation: .id(operation))
            })
        try await run(Query(script: script) { _ in () })
    }
}

private let freeRow = Statement("UPDATE idempotency SET holder = NULL WHERE \(isRunning)")
