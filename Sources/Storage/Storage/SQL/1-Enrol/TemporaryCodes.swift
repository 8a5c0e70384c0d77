import Domain
import Relay
import World

/// The temporary codes that operators give out.
///
/// A code has two rows. That of the table `factor` makes it a factor of its user, and counts its
/// wrong codes; that of `temporary_code` has the digest and what the code permits. They are written
/// and deleted together.
public enum TemporaryCodes {
    /// A code as an operator sees it.
    public struct Shown: Sendable, Equatable {
        public let factor: FactorID
        public let uses: Int
        public let usesLeft: Int
        public let mayEnrol: Bool
        public let createdAt: Timestamp
        public let expiresAt: Timestamp
        public let lastUsedAt: Timestamp?

        public func isUsable(at now: Timestamp) -> Bool { usesLeft > 0 && now < expiresAt }
    }

    /// Why a code ended before it expired, or was used up.
    public enum End: String, Sendable, CaseIterable {
        case `operator`, replaced, fraud, restore
    }

    /// The condition that the code `t` can be used at `:now`.
    static let isUsable = "t.uses_left > 0 AND t.expires_at > :now"

    /// Reads the code of a user, whether it can still be used or not.
    public static func shown(of user: UserID) -> Query<Shown?> {
        Query(script: Script("temporary code", reads: [ofUser(user: .id(user))])) { rows throws(StoreFailure) in
            guard let row = rows[0].first else { return nil }
            return Shown(
                factor: try row.id("factor_id"), uses: Int(try row.integer("uses")),
                usesLeft: Int(try row.integer("uses_left")), mayEnrol: try row.bool("may_enrol"),
                createdAt: try row.timestamp("created_at"), expiresAt: try row.timestamp("expires_at"),
                lastUsedAt: try row.optionalTimestamp("last_used_at"))
        }
    }

    private static let ofUser = Statement(
        """
        SELECT factor_id, uses, uses_left, may_enrol, created_at, expires_at, last_used_at FROM temporary_code
        WHERE user_id = :user
        """)

    /// Reads the code with which a typed one is compared.
    static func usable(_ user: UserID, at now: Timestamp) -> BoundStatement {
        usableOfUser(user: .id(user), now: .timestamp(now))
    }

    private static let usableOfUser = Statement(
        """
        SELECT t.factor_id, t.digest, t.uses_left, t.may_enrol FROM temporary_code t
        WHERE t.user_id = :user AND \(isUsable)
        """)

    static func read(_ row: Row) throws(StoreFailure) -> OpenTemporaryCode {
        OpenTemporaryCode(
            factor: try row.id("factor_id"), digest: try row.blob("digest"),
            usesLeft: Int(try row.integer("uses_left")), mayEnrol: try row.bool("may_enrol"))
    }
}

/// The beginning of a code.
extension TemporaryCodes {
    /// Gives a code out. The user must be active and not expired, and the user's codes unlocked. The
    /// answer is false otherwise.
    ///
    /// - Parameter replacing: the code that it may replace. If the user has another one that can be
    ///   used, the answer is false, too.
    public static func issue(
        _ new: NewTemporaryCode, replacing: FactorID?, as operation: Operation
    ) -> Query<Bool> {
        let (user, own, now) = (SQLValue.id(new.user), SQLValue.id(operation), SQLValue.timestamp(new.at))
        let former = SQLValue.id(operation.identifier(revoked) as OperationID)
        let writes =
            [
                Locks.hold(user: user),
                markUser(operation: own, user: user, now: now, replacing: .id(replacing)),
                auditIssued(operation: own, now: now, note: .text(new.summary), user: user),
                auditRevoked(
                    own: former, now: now, outcome: .word(End.replaced), user: user, isAny: .bool(false),
                    operation: own),
            ]
            + dropped(new.user, noted: operation.id) + [
                insertFactor(factor: .id(new.id), now: now, operation: own, user: user),
                insertCode(
                    factor: .id(new.id), digest: .blob(new.digest), uses: .integer(Int64(new.uses)),
                    mayEnrol: .bool(new.mayEnrol), now: now, expiresAt: .timestamp(new.expiresAt), operation: own,
                    user: user),
            ]
            + AccountEventRows.steps(
                .temporaryIssued, user: new.user, device: nil, after: issued, at: new.at, as: operation)
        let rows: [SignedRows] =
            [.user(new.user).signed, .factor(new.id).signed, .temporaryCode(of: new.user).lenient]
            + AccountEventRows.rows(.temporaryIssued, as: operation)
        return Query(change: Change("temporary code", operation, rows: rows, writes)) { rows in rows.happened }
    }

    static let issued = "temporary.issued"
    private static let revoked = "temporary.revoked"

    private static let markUser = Statement(
        """
        UPDATE user SET operation = :operation WHERE id = :user AND \(Guards.userMayLogIn) AND codes_locked_at IS NULL
        AND NOT EXISTS (SELECT 1 FROM temporary_code t
        WHERE t.user_id = user.id AND \(isUsable) AND t.factor_id <> coalesce(:replacing, ''))
        """)

    private static let auditIssued = Statement.audit(
        """
        INSERT INTO audit (operation, at, event, website_id, user_id, outcome)
        SELECT :operation, :now, 'temporary.issued', u.website_id, u.id, 'operator' FROM user u
        WHERE u.id = :user AND u.operation = :operation
        \(Audit.once)
        """)

    private static let insertFactor = Statement(
        into: .factor, once: true,
        """
        INSERT INTO factor
        (id, user_id, kind, state, algorithm, digits, counter, failures, created_at, confirmed_at, operation)
        SELECT :factor, u.id, 'operator', 'active', 'sha256', \(TemporaryCode.letters), 0, 0, :now, :now, :operation
        FROM user u WHERE u.id = :user AND u.operation = :operation
        """)

    private static let insertCode = Statement(
        into: .temporaryCode, once: true,
        """
        INSERT INTO temporary_code
        (factor_id, user_id, digest, uses, uses_left, may_enrol, created_at, expires_at, operation)
        SELECT :factor, u.id, :digest, :uses, :uses, :mayEnrol, :now, :expiresAt, :operation
        FROM user u WHERE u.id = :user AND u.operation = :operation
        """)
}

/// The use of a code.
extension TemporaryCodes {
    /// Counts a use of the code that has ended the challenge, and audits it.
    static func used(
        _ code: OpenTemporaryCode, ending challenge: ChallengeID, at now: Timestamp, as operation: Operation
    ) -> [BoundStatement] {
        [
            countUse(
                now: .timestamp(now), factor: .id(code.factor), left: .integer(Int64(code.usesLeft)),
                challenge: .id(challenge), operation: .id(operation)),
            auditUsed(
                own: .id(use(operation)), now: .timestamp(now), challenge: .id(challenge), operation: .id(operation)),
        ]
    }

    private static func use(_ operation: Operation) -> OperationID {
        operation.identifier(AccountEvent.temporaryUsed.rawValue)
    }

    private static let countUse = Statement(
        """
        UPDATE temporary_code SET uses_left = uses_left - 1, last_used_at = :now
        WHERE factor_id = :factor AND uses_left = :left AND \(Guards.challengeWritten)
        """)

    private static let auditUsed = Statement.audit(
        """
        INSERT INTO audit (operation, at, event, website_id, user_id, challenge_id, proof)
        SELECT :own, :now, 'temporary.used', c.website_id, c.user_id, c.id, 'code' FROM challenge c
        WHERE c.id = :challenge AND c.operation = :operation
        \(Audit.once)
        """)

    /// Writes the entries that tell website and user of a use.
    static func useAnnounced(
        of user: UserID, ending challenge: ChallengeID, at now: Timestamp, as operation: Operation
    ) -> [BoundStatement] {
        AccountEventRows.steps(
            .temporaryUsed, user: user, device: nil, challenge: challenge, at: now, as: operation,
            noted: use(operation))
    }
}

/// The end of a code.
extension TemporaryCodes {
    /// Makes the code of a user void, also one that is used up, and all that it may have approved. The
    /// answer is false if there is none.
    public static func revoke(_ user: UserID, at now: Timestamp, as operation: Operation) -> Query<Bool> {
        let writes =
            [
                Locks.hold(user: .id(user)),
                auditRevoked(
                    own: .id(operation), now: .timestamp(now), outcome: .word(End.operator), user: .id(user),
                    isAny: .bool(true), operation: .null),
            ] + dropped(user, noted: operation.id)
            + UnusedApprovals.ended(
                of: user, but: nil, because: .factor, isSparing: true, at: now, as: operation)
        let rows = [.user(user).lenient] + UnusedApprovals.rows(of: user, at: now, as: operation)
        return Query(change: Change("temporary code", operation, rows: rows, writes)) { rows in rows.happened }
    }

    /// Makes the code of a user void, as a part of a change whose audit row is `noted`.
    static func ended(
        of user: UserID, because end: End, at now: Timestamp, noted: OperationID, as operation: Operation
    ) -> [BoundStatement] {
        [
            auditRevoked(
                own: .id(operation.identifier(revoked) as OperationID), now: .timestamp(now), outcome: .word(end),
                user: .id(user), isAny: .bool(false), operation: .id(noted))
        ] + dropped(user, noted: noted)
    }

    /// Audits the end of a code that could be used, or of any, after the audit row of `:operation`;
    /// NULL needs none.
    private static let auditRevoked = Statement.audit(
        """
        INSERT INTO audit (operation, at, event, website_id, user_id, outcome)
        SELECT :own, :now, 'temporary.revoked', u.website_id, u.id, :outcome
        FROM temporary_code t JOIN user u ON u.id = t.user_id
        WHERE t.user_id = :user AND (:isAny = 1 OR \(isUsable)) AND (:operation IS NULL OR \(Guards.audited))
        \(Audit.once)
        """)

    /// Deletes the rows of the user's code, after an audit row. Its wrong codes stay counted.
    private static func dropped(_ user: UserID, noted: OperationID) -> [BoundStatement] {
        [
            CodeFailures.kept(.operator, of: user, noted: noted),
            dropCode(user: .id(user), operation: .id(noted)),
            dropFactor(user: .id(user), operation: .id(noted)),
        ]
    }

    private static let dropCode = Statement("DELETE FROM temporary_code WHERE user_id = :user AND \(Guards.audited)")

    private static let dropFactor = Statement(
        "DELETE FROM factor WHERE user_id = :user AND kind = 'operator' AND \(Guards.audited)")
}

/// The end of many codes.
extension TemporaryCodes {
    /// Makes all codes of the store void, for a store that was restored: whoever has an older copy
    /// of a code could use it once more.
    public static func voidAll(at now: Timestamp) -> Query<Void> {
        let ends = dropped(
            [], before: Timestamp.choosable.upperBound, event: revoked, outcome: .word(End.restore), at: now, by: nil)
        return Query(script: Script("temporary codes", writes: ends)) { _ in () }
    }

    /// Finds codes that have expired.
    static func findExpired(before: Timestamp, limit: Int) -> BoundStatement {
        expired(before: .timestamp(before), limit: .integer(Int64(limit)))
    }

    private static let expired = Statement(
        "SELECT factor_id AS id FROM temporary_code WHERE expires_at < :before LIMIT :limit")

    /// Audits and deletes these codes if they have expired, and if the relay has the lease of the
    /// retention.
    ///
    /// - Parameter factors: at most as many as `ExpiredRowDeletion.groups` puts into a group.
    static func dropExpired(_ factors: [SQLValue], before: Timestamp, by relay: RelayID) -> [BoundStatement] {
        dropped(factors, before: before, event: "temporary.expired", outcome: .null, at: before, by: relay)
    }

    /// Ends the codes of these factors; of all, if there are none. A code ends once, so its audit
    /// row has the id of its factor.
    private static func dropped(
        _ factors: [SQLValue], before: Timestamp, event: String, outcome: SQLValue, at now: Timestamp,
        by relay: RelayID?
    ) -> [BoundStatement] {
        let (before, relay, isAll) = (SQLValue.timestamp(before), SQLValue.id(relay), SQLValue.bool(factors.isEmpty))
        func bound(_ statement: Statement) -> BoundStatement {
            statement.bound(["before": before, "isAll": isAll, "relay": relay], lists: ["id": factors])
        }
        return [
            bound(keepFailures),
            auditEnds.bound(
                [
                    "now": .timestamp(now), "event": .text(event), "outcome": outcome, "before": before,
                    "isAll": isAll, "relay": relay,
                ], lists: ["id": factors]),
            bound(dropFactors), bound(dropCodes),
        ]
    }

    private static let keepFailures = Statement(
        """
        UPDATE user /*M! JOIN temporary_code t ON t.user_id = user.id */
        SET code_failures_kept = /*M! least( */ /*S! min( */ code_failures, code_failures_kept +
        (SELECT coalesce(sum(f.failures), 0) FROM factor f WHERE f.user_id = user.id AND f.kind = 'operator'))
        WHERE /*M! \(hasEnded) */ /*S! id IN (SELECT t.user_id FROM temporary_code t WHERE \(hasEnded)) */
        AND code_failures > 0
        """)

    /// Codes that were used up have their own rows in the audit.
    private static let auditEnds = Statement.audit(
        """
        INSERT INTO audit (at, operation, event, website_id, user_id, outcome)
        SELECT :now, t.factor_id, :event, u.website_id, u.id, :outcome
        FROM temporary_code t JOIN user u ON u.id = t.user_id
        WHERE \(hasEnded) AND t.uses_left > 0
        \(Audit.once)
        """)

    private static let dropFactors = Statement(
        """
        DELETE /*M! f */ FROM factor
        /*M! AS f JOIN temporary_code t ON t.factor_id = f.id WHERE \(hasEnded) */
        /*S! WHERE id IN (SELECT t.factor_id FROM temporary_code t WHERE \(hasEnded)) */
        """)

    private static let dropCodes = Statement("DELETE /*M! t */ FROM temporary_code AS t WHERE \(hasEnded)")

    /// The condition that the code `t` ends, and that the relay has the lease of the retention; NULL
    /// needs none.
    private static let hasEnded = """
        t.expires_at < :before AND (:isAll = 1 OR t.factor_id IN \(ExpiredRowDeletion.ids)) AND (:relay IS NULL
        OR \(RetentionLease.isHeld))
        """
}
