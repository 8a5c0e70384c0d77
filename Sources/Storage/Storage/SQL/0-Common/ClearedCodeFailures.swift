import Domain
import Relay
import World

extension Store {
    public func reopenCodes(_ reopening: CodeReopening, as operation: Operation) async throws(StoreFailure) -> Bool {
        let writes =
            [
                Locks.hold(user: .id(reopening.user)),
                markLocked(
                    operation: .id(operation), user: .id(reopening.user), lockedAt: .timestamp(reopening.lockedAt)),
            ]
            + Approvals.required(
                reopening.approved, of: reopening.user, at: reopening.at, as: operation) + [
                auditReopened(
                    operation: .id(operation), now: .timestamp(reopening.at),
                    challenge: .id(reopening.approved.challenge), user: .id(reopening.user))
            ] + CodeFailures.cleared(of: reopening.user, as: operation)
        let rows: [SignedRows] = [.user(reopening.user).signed, .challenge(reopening.approved.challenge).signed]
        let change = Change("reopen codes", operation, rows: rows, writes)
        return try await run(Query(change: change) { rows in rows.happened })
    }
}

/// An approval is valid only for the lock that existed when the user was asked.
private let markLocked = Statement(
    "UPDATE user SET operation = :operation WHERE id = :user AND state = 'active' AND codes_locked_at = :lockedAt")

private let auditReopened = Statement.audit(
    """
    INSERT INTO audit (operation, at, event, website_id, user_id, challenge_id, device_id, proof)
    SELECT :operation, :now, 'codes.unlocked', u.website_id, u.id, c.id, c.device_id, c.proof
    FROM challenge c JOIN user u ON u.id = c.user_id
    WHERE c.id = :challenge AND u.id = :user AND u.operation = :operation
    \(Audit.once)
    """)

extension CodeFailures {
    /// Accepts codes again and sets the failure counts to zero. It is part of a change that
    /// `operation` has put into the audit.
    static func cleared(of user: UserID, as operation: Operation) -> [BoundStatement] {
        [
            clearUser(user: .id(user), operation: .id(operation)),
            clearFactors(user: .id(user), operation: .id(operation)),
        ]
    }

    private static let clearUser = Statement(
        """
        UPDATE user SET code_failures = 0, code_failures_kept = 0, code_failed_at = NULL, codes_locked_at = NULL
        WHERE id = :user AND \(Guards.audited)
        """)

    private static let clearFactors = Statement(
        """
        UPDATE factor SET failures = 0, failed_at = NULL
        WHERE user_id = :user AND failures > 0 AND \(Guards.audited)
        """)

    /// Records that a code of this factor was right, and clears the wrong codes that could only
    /// have been guesses at this factor. It is part of a change that `operation` has put into the
    /// audit.
    static func right(
        _ factor: FactorID, of user: UserID, at now: Timestamp, as operation: Operation
    ) -> [BoundStatement] {
        [
            clearOwnOfAudited(factor: .id(factor), user: .id(user), operation: .id(operation)),
            clearFactorOfAudited(now: .timestamp(now), factor: .id(factor), operation: .id(operation)),
        ]
    }

    private static let clearOwnOfAudited = Statement("\(clearOwn) \(Guards.audited)")
    private static let clearFactorOfAudited = Statement("\(clearFactor) \(Guards.audited)")

    /// Does the same as part of a change that ends a challenge.
    static func right(
        _ factor: FactorID, of user: UserID, ending challenge: ChallengeID, at now: Timestamp, by operation: Operation
    ) -> [BoundStatement] {
        [
            clearOwnOfEnded(
                factor: .id(factor), user: .id(user), challenge: .id(challenge), operation: .id(operation)),
            clearFactorOfEnded(
                now: .timestamp(now), factor: .id(factor), challenge: .id(challenge), operation: .id(operation)),
        ]
    }

    private static let clearOwnOfEnded = Statement("\(clearOwn) \(Guards.challengeWritten)")
    private static let clearFactorOfEnded = Statement("\(clearFactor) \(Guards.challengeWritten)")

    /// Reduces the user's count by the factor's own wrong codes. Some of these may also count for
    /// other factors or for removed ones. The remaining count is therefore never less than the
    /// count of any other factor or the kept count.
    private static let clearOwn = """
        UPDATE user SET code_failures = /*M! greatest( */ /*S! max( */ code_failures_kept,
        code_failures - coalesce((SELECT f.failures FROM factor f WHERE f.id = :factor), 0),
        (SELECT coalesce(max(o.failures), 0) FROM factor o WHERE o.user_id = user.id AND o.id <> :factor))
        WHERE id = :user AND code_failures > 0 AND
        """

    private static let clearFactor =
        "UPDATE factor SET failures = 0, failed_at = NULL, last_code_at = :now WHERE id = :factor AND"

    /// Keeps the wrong codes of the active factor of that kind when the factor is removed or gets
    /// another secret. They stay counted, and no right code clears them. The statement must precede
    /// the removal of the factor and follow the audit of the change.
    static func kept(_ kind: Factor, of user: UserID, as operation: Operation) -> BoundStatement {
        kept(kind, of: user, noted: operation.id)
    }

    /// Does the same, after a change whose audit row has another id than the operation's.
    static func kept(_ kind: Factor, of user: UserID, noted: OperationID) -> BoundStatement {
        keepOfAudited(kind: .word(kind), user: .id(user), operation: .id(noted))
    }

    private static let keepOfAudited = Statement("\(keep) \(Guards.audited)")

    /// Keeps the same wrong codes, in a change that has marked the user's row.
    static func keptOfMarked(_ kind: Factor, of user: UserID, as operation: Operation) -> BoundStatement {
        keepOfMarked(kind: .word(kind), user: .id(user), operation: .id(operation))
    }

    private static let keepOfMarked = Statement("\(keep) operation = :operation")

    private static let keep = """
        UPDATE user SET code_failures_kept = /*M! least( */ /*S! min( */ code_failures, code_failures_kept +
        (SELECT coalesce(sum(f.failures), 0) FROM factor f
        WHERE f.user_id = user.id AND f.kind = :kind AND f.state = 'active'))
        WHERE id = :user AND code_failures > 0 AND
        """
}
