import Domain
import Relay
import World

/// The check that a user has written new recovery codes down.
extension Store {
    public func position(
        ofRecovery digest: [UInt8], in factor: FactorID, of user: UserID
    ) async throws(StoreFailure) -> Int64? {
        let script = Script(
            "recovery", rows: [.recoveryCode(digest, of: user)],
            reads: [positionOfCode(user: .id(user), digest: .blob(digest), factor: .id(factor))])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in try rows[0].first?.integer("position") })
    }

    public func confirm(
        recovery factor: CodeFactor, of user: UserID, digest: [UInt8], failures: Int, isVouchedFor: Bool,
        at now: Timestamp, as operation: Operation
    ) async throws(StoreFailure) -> CodeUseOutcome {
        let guards = [
            unmarkWrong(
                user: .id(user), operation: .id(operation), digest: .blob(digest), factor: .id(factor.id),
                counter: .integer(factor.counter))
        ]
        let writes = Factors.confirmed(
            factor, of: user, failures: failures, counter: factor.counter, hasWord: isVouchedFor, guards: guards,
            at: now, as: operation)
        let change = Change(
            "confirm", operation,
            rows: Factors.rows(confirming: factor, of: user, at: now, as: operation) + [
                .recoveryCode(digest, of: user)
            ],
            writes + [RecoveryRows.orphansDropped(user, as: operation)])
        return try await run(Query(change: change) { rows in rows.happened ? .done : .changed })
    }
}

private let positionOfCode = Statement(
    """
    SELECT position FROM recovery_code
    WHERE user_id = :user AND digest = :digest AND factor_id = :factor AND used_at IS NULL
    """)

/// Removes the mark of the user's row unless the code stands at the asked position of this set.
private let unmarkWrong = Statement(
    """
    UPDATE user SET operation = id WHERE id = :user AND operation = :operation AND NOT EXISTS
    (SELECT 1 FROM recovery_code r WHERE r.user_id = :user AND r.digest = :digest AND r.factor_id = :factor
    AND r.position = :counter AND r.used_at IS NULL)
    """)
