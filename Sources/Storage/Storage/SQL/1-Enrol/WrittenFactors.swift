import Domain
import Relay
import World

/// Statements about code factors that several verbs use.
public enum Factors {
    /// Replaces the active factor by the waiting one, if the latter is as it was read. Codes that
    /// were sent for either become void.
    ///
    /// - Parameter guards: statements that remove the mark of the user's row if another condition
    ///   does not hold.
    static func confirmed(
        _ factor: CodeFactor, of user: UserID, failures: Int, counter: Int64, hasWord: Bool,
        guards: [BoundStatement] = [],
        at now: Timestamp, as operation: Operation
    ) -> [BoundStatement] {
        [
            Locks.hold(user: .id(user)),
            markUserOfWaiting.bound(
                [
                    "operation": .id(operation), "user": .id(user), "failures": .integer(Int64(failures)),
                    "factor": .id(factor.id), "counter": .integer(factor.counter), "isVouchedFor": .bool(hasWord),
                    "now": .timestamp(now),
                ], lists: ["address": .forms(ofAddress: factor.address)]),
        ] + guards + [
            auditConfirmed(
                operation: .id(operation), now: .timestamp(now), kind: .word(factor.kind), user: .id(user))
        ] + codesVoided(factor.kind, now: factor.address, of: user, at: now, as: operation) + [
            CodeFailures.kept(factor.kind, of: user, as: operation),
            dropActive(factor.kind, of: user, as: operation),
            makeActive(
                counter: .integer(counter), now: .timestamp(now), operation: .id(operation), factor: .id(factor.id)),
        ] + CodeFailures.right(factor.id, of: user, at: now, as: operation) + [
            prove(now: .timestamp(now), user: .id(user), operation: .id(operation))
        ] + (factor.kind == .totp ? Recoveries.finished(by: factor.id, of: user, at: now, as: operation) : [])
    }

    /// Marks the row of a user with a waiting factor. Without an approval by the website, the user
    /// must have approved the factor, have registered with the address, or have not proved a factor
    /// yet. A factor keeps its address, so it is the one that the caller has read. A factor that a
    /// recovery has created counts only while that recovery is open.
    private static let markUserOfWaiting = Statement(
        """
        UPDATE user SET operation = :operation
        WHERE id = :user AND \(Guards.userMayLogIn) AND codes_locked_at IS NULL AND code_failures = :failures AND EXISTS
        (SELECT 1 FROM factor f
        WHERE f.id = :factor AND f.user_id = user.id AND f.state = 'waiting' AND f.counter = :counter
        AND (:isVouchedFor = 1 OR user.proved_at IS NULL OR f.approval IS NOT NULL
        OR \(PersonalForms.equal("user.email", "address")) OR \(PersonalForms.equal("user.phone", "address")))
        AND NOT EXISTS (SELECT 1 FROM recovery r
        WHERE r.id = f.approval AND (r.state <> 'proved' OR r.expires_at <= :now)))
        """)

    private static let auditConfirmed = Statement.audit(
        """
        INSERT INTO audit (operation, at, event, website_id, user_id, outcome, proof)
        SELECT :operation, :now, 'factor.bound', u.website_id, u.id, :kind, 'code' FROM user u
        WHERE u.id = :user AND u.operation = :operation
        \(Audit.once)
        """)

    private static let makeActive = Statement(
        """
        UPDATE factor SET state = 'active', counter = :counter, confirmed_at = :now, operation = :operation
        WHERE id = :factor AND state = 'waiting' AND \(Guards.audited)
        """)

    /// Records that the user has proved a factor. After the first app or token, as after the first
    /// phone, each further factor needs the user's approval. Addresses and recovery codes do not
    /// count as proof.
    private static let prove = Statement(
        """
        UPDATE user SET proved_at = :now WHERE id = :user AND proved_at IS NULL AND EXISTS
        (SELECT 1 FROM audit WHERE operation = :operation AND event = 'factor.bound' AND outcome IN ('totp', 'hotp'))
        """)

    /// The rows that `confirmed` relies on and writes. The user's row comes first, because other
    /// changes of the user wait for it.
    static func rows(
        confirming factor: CodeFactor, of user: UserID, at now: Timestamp, as operation: Operation
    ) -> [SignedRows] {
        [.user(user).signed, .factor(factor.id).signed] + rows(voiding: factor.kind, of: user, at: now, as: operation)
            + (factor.kind == .totp ? Recoveries.rows(finishedBy: factor.id, as: operation) : [])
    }

    /// Writes the factor's row for a user whose row this operation has marked. It replaces the
    /// factor of the same kind and state. Wrong codes stay counted. No right code clears those of a
    /// replaced active factor; the first right code clears those of a replaced waiting one.
    static func written(_ factor: NewFactor, as operation: Operation) -> [BoundStatement] {
        let kept =
            factor.state == .active ? [CodeFailures.keptOfMarked(factor.kind, of: factor.user, as: operation)] : []
        let writes = [replaceFactor, insertFactor].map { write in
            write(
                factor: .id(factor.id), secret: .blob(factor.sealed?.bytes), key: .text(factor.sealed?.key),
                algorithm: .word(factor.algorithm), digits: .integer(Int64(factor.digits)),
                period: .integer(factor.period.map { Int64($0) }), counter: .integer(factor.counter),
                address: .address(factor.address),
                challenge: factor.recovery.map { .id($0.recovery) } ?? .id(factor.approvedBy?.challenge),
                now: .timestamp(factor.at), confirmedAt: factor.state == .active ? .timestamp(factor.at) : .null,
                operation: .id(operation), kind: .word(factor.kind), state: .word(factor.state),
                user: .id(factor.user))
        }
        return kept + writes
    }

    private static let replaceFactor = Statement(
        moving: .factor,
        """
        UPDATE factor SET id = :factor, secret = :secret, sealed_by = :key, algorithm = :algorithm, digits = :digits,
        period = :period, counter = :counter, address = :address, approval = :challenge, device_id = NULL, resync_since = NULL,
        created_at = :now,
        confirmed_at = :confirmedAt, last_code_at = NULL, operation = :operation, failures = CASE state WHEN 'active' THEN 0 ELSE failures END
        WHERE kind = :kind AND state = :state AND user_id = :user AND \(Guards.userMarked)
        """)

    private static let insertFactor = Statement(
        into: .factor, once: true,
        """
        INSERT INTO factor
        (id, secret, sealed_by, algorithm, digits, period, counter, address, approval, created_at,
        confirmed_at, operation, kind, state, user_id, failures)
        SELECT :factor, :secret, :key, :algorithm, :digits, :period, :counter, :address, :challenge, :now,
        :confirmedAt, :operation, :kind, :state, u.id, 0 FROM user u WHERE u.id = :user AND u.operation = :operation
        """)

    /// The row that `written` writes. The factor keeps nothing of a row that it replaces, so that
    /// row need not be genuine. `codeUseRecorded` also writes the user's row, and the script that
    /// marks this row declares it.
    static func rows(_ factor: NewFactor) -> [SignedRows] { [.factor(factor.id).signed] }

    static func codeUseRecorded(_ factor: NewFactor, _ event: String, as operation: Operation) -> [BoundStatement] {
        [
            audit(factor.id, event, at: factor.at, as: operation),
            prove(now: .timestamp(factor.at), user: .id(factor.user), operation: .id(operation)),
        ]
    }

    /// Audits that this operation has written the factor's row.
    static func audit(
        _ factor: FactorID, _ event: String, at now: Timestamp, as operation: Operation
    ) -> BoundStatement {
        auditFactor(operation: .id(operation), now: .timestamp(now), event: .text(event), factor: .id(factor))
    }

    private static let auditFactor = Statement.audit(
        """
        INSERT INTO audit (operation, at, event, website_id, user_id, challenge_id, outcome)
        SELECT :operation, :now, :event, u.website_id, u.id, f.approval, f.kind
        FROM factor f JOIN user u ON u.id = f.user_id WHERE f.id = :factor AND f.operation = :operation
        \(Audit.once)
        """)
}
