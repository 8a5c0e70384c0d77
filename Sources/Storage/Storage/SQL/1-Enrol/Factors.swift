import Domain
import Relay
import World

extension Store: FactorStore {
    public func factors(of user: UserID) async throws(StoreFailure) -> [CodeFactor] {
        try await run(
            Query(
                script: Script("factors", rows: [.factors(of: user)], reads: [BoundStatement(factorsOfUser, .id(user))])
            ) {
                rows throws(StoreFailure) in
                var factors: [CodeFactor] = []
                for row in rows[0] { factors.append(try CodeFactors.read(row)) }
                return factors
            })
    }

    public func enrol(
        _ enrolling: FactorEnrolment, website: WebsiteID, as operation: Operation
    ) async throws(StoreFailure) -> EnrolOutcome {
        let factor = enrolling.factor
        let others: [SQLValue] = [.word(factor.kind)]
        var writes = [
            BoundStatement(Locks.hold, .id(factor.user)),
            BoundStatement(
                markUser,
                values: [
                    .id(operation), .id(factor.user), .id(website), .bool(enrolling.isVouchedFor),
                    .bool(enrolling.mayReplace),
                ] + others),
        ]
        writes += OperationSecrets.onlyOnce(factor.user, as: operation)
        if let approved = factor.approvedBy {
            writes += Approvals.required(approved, of: factor.user, as: operation)
        }
        writes += Factors.written(factor, as: operation)
        writes += RecoveryRows.replaced(enrolling, as: operation)
        writes += Factors.codeUseRecorded(
            factor, factor.state == .active ? "factor.bound" : "factor.waiting", as: operation)
        writes += OperationSecrets.stored(enrolling.secret, as: operation)
        let approval = factor.approvedBy.map { [SignedRows.challenge($0.challenge).signed] } ?? []
        let change = Change(
            "enrol", operation,
            rows: [.user(factor.user).signed] + approval + Factors.rows(factor) + RecoveryRows.rows(enrolling), writes,
            reads: [
                OperationSecrets.read(operation.id),
                BoundStatement(whyNot, .word(factor.kind), .id(factor.user), .id(website)),
            ])
        return try await run(
            Query(change: change) { rows throws(StoreFailure) in
                if rows.happened { return .done(secret: try rows[1].operationSecret) }
                guard let row = rows[2].first else { return .gone }
                let state: UserState = try row.word(0)
                guard state == .active else { return .barred(state) }
                return try row.bool(1) && !enrolling.mayReplace ? .taken : .refused
            })
    }

    public func confirm(
        _ factor: CodeFactor, of user: UserID, failures: Int, counter: Int64, isVouchedFor: Bool, at now: Timestamp,
        as operation: Operation
    ) async throws(StoreFailure) -> CodeUseOutcome {
        let writes = Factors.confirmed(
            factor, of: user, failures: failures, counter: counter, hasWord: isVouchedFor, at: now, as: operation)
        let change = Change("confirm", operation, rows: Factors.rows(confirming: factor, of: user), writes)
        return try await run(Query(change: change) { rows in rows.happened ? .done : .changed })
    }

    public func resynchronise(
        _ factor: CodeFactor, of user: UserID, failures: Int, counter: Int64, at now: Timestamp,
        as operation: Operation
    ) async throws(StoreFailure) -> CodeUseOutcome {
        let change = Change(
            "resync", operation, rows: [.user(user).signed, .factor(factor.id).signed],
            [
                BoundStatement(Locks.hold, .id(user)),
                BoundStatement(
                    moveCounter, .integer(counter), .id(operation), .id(factor.id), .integer(factor.counter), .id(user),
                    .integer(Int64(failures))),
                BoundStatement(
                    auditFactor, .id(operation), .timestamp(now), .text("factor.resynced"), .id(factor.id),
                    .id(operation)),
            ] + CodeFailures.forget(factor.id, of: user, as: operation))
        return try await run(Query(change: change) { rows in rows.happened ? .done : .changed })
    }

    public func drop(
        _ kind: Factor, of user: UserID, by doer: ChangeAuthor, at now: Timestamp, as operation: Operation
    ) async throws(StoreFailure) -> Bool {
        try await run(Factors.drop(kind, of: user, by: doer, at: now, as: operation))
    }

    public func unlock(
        _ user: UserID, recovery digest: [UInt8], of factor: FactorID, failures: Int, at now: Timestamp,
        as operation: Operation
    ) async throws(StoreFailure) -> Bool {
        let change = Change(
            "unlock", operation, rows: [.user(user).signed, .recoveryCode(digest, of: user).signed],
            [
                BoundStatement(Locks.hold, .id(user)),
                RecoveryRows.activate(user, by: digest, failures: failures, as: operation),
            ]
                + [RecoveryRows.used(digest, of: user, at: now, as: operation)]
                + Locks.unlocked(user, by: .code, at: now, as: operation)
                + CodeFailures.forget(factor, of: user, as: operation))
        return try await run(Query(change: change) { rows in rows.happened })
    }

    public func recordCodeUse(_ operation: OperationID) async throws(StoreFailure) -> String? {
        try await run(
            Query(script: Script("noted", reads: [BoundStatement(eventOf, .id(operation))])) {
                rows throws(StoreFailure) in
                try rows[0].first?.text(0)
            })
    }
}

/// What several verbs write of code factors.
public enum Factors {
    /// The waiting factor, if it is as it was read, in the place of the one that counts; what was sent to either is void.
    ///
    /// - Parameter guards: take the mark of the user's row away where something else does not hold.
    static func confirmed(
        _ factor: CodeFactor, of user: UserID, failures: Int, counter: Int64, hasWord: Bool,
        guards: [BoundStatement] = [],
        at now: Timestamp, as operation: Operation
    ) -> [BoundStatement] {
        let mine: [SQLValue] = [.id(user), .id(operation)]
        return [
            BoundStatement(Locks.hold, .id(user)),
            BoundStatement(
                markUserOfWaiting, .id(operation), .id(user), .integer(Int64(failures)), .id(factor.id),
                .integer(factor.counter), .bool(hasWord)),
        ] + guards + [
            BoundStatement(
                auditConfirmed,
                values: [.id(operation), .timestamp(now), .word(factor.kind)] + mine)
        ] + codesVoided(factor.kind, of: user, at: now, as: operation) + [
            CodeFailures.kept(factor.kind, of: user, as: operation),
            dropActive(factor.kind, of: user, as: operation),
            BoundStatement(
                makeActive, .integer(counter), .timestamp(now), .id(operation), .id(factor.id), .id(operation)),
        ] + CodeFailures.forget(factor.id, of: user, as: operation) + [
            BoundStatement(prove, .timestamp(now), .id(user), .id(operation))
        ]
    }

    /// The rows that `confirmed` relies on and writes. The user's row comes first: others wait there.
    static func rows(confirming factor: CodeFactor, of user: UserID) -> [SignedRows] {
        [.user(user).signed, .factor(factor.id).signed] + rows(voiding: factor.kind, of: user)
    }

    /// The factor's row, for a user whose row this operation has marked, in the place of the one of
    /// its kind and state. Wrong codes stay counted: those of a factor that counted are cleared by
    /// no right code any more, those of one that waited by the first right code.
    static func written(_ factor: NewFactor, as operation: Operation) -> [BoundStatement] {
        let values: [SQLValue] = [
            .id(factor.id), .blob(factor.sealed?.bytes), .text(factor.sealed?.key), .word(factor.algorithm),
            .integer(Int64(factor.digits)), factor.period.map { .integer(Int64($0)) } ?? .null,
            .integer(factor.counter), .text(factor.address), .id(factor.approvedBy?.challenge), .timestamp(factor.at),
            factor.state == .active ? .timestamp(factor.at) : .null, .id(operation),
        ]
        let place: [SQLValue] = [.word(factor.kind), .word(factor.state)]
        let user: [SQLValue] = [.id(factor.user), .id(operation)]
        let kept =
            factor.state == .active ? [CodeFailures.keptOfMarked(factor.kind, of: factor.user, as: operation)] : []
        return kept + [
            BoundStatement(replaceFactor, values: values + [.id(factor.user)] + place + user),
            BoundStatement(insertFactor, values: values + place + user),
        ]
    }

    /// The row that `written` writes. A row whose place the factor takes keeps nothing that it had, so nobody needs to
    /// have signed it. The user's row, which `noted` writes, is declared by the script that marks it.
    static func rows(_ factor: NewFactor) -> [SignedRows] { [.factor(factor.id).signed] }

    static func codeUseRecorded(_ factor: NewFactor, _ event: String, as operation: Operation) -> [BoundStatement] {
        [
            BoundStatement(
                auditFactor, .id(operation), .timestamp(factor.at), .text(event), .id(factor.id), .id(operation)),
            BoundStatement(prove, .timestamp(factor.at), .id(factor.user), .id(operation)),
        ]
    }
}

private let factorsOfUser = Statement(
    "SELECT " + CodeFactors.columns + " FROM factor f WHERE f.user_id = ? ORDER BY f.created_at, f.id")

private let counts = "EXISTS (SELECT 1 FROM factor f WHERE f.user_id = user.id AND f.kind = ? AND f.state = 'active')"

/// Without anybody's word only for a user who has nothing of their own yet; and for nobody who is locked or frozen.
private let markUser = Statement(
    """
    UPDATE user SET operation = ? WHERE id = ? AND website_id = ? AND state = 'active'
    AND (? = 1 OR proved_at IS NULL) AND (? = 1 OR NOT \(counts))
    """)

private let noted = " EXISTS (SELECT 1 FROM audit WHERE operation = ?)"
private let marked = " EXISTS (SELECT 1 FROM user u WHERE u.id = ? AND u.operation = ?)"

private let replaceFactor = Statement(
    moving: .factor,
    """
    UPDATE factor SET id = ?, secret = ?, sealed_by = ?, algorithm = ?, digits = ?, period = ?, counter = ?, address = ?,
    approval = ?, created_at = ?, confirmed_at = ?, operation = ?,
    failures = CASE state WHEN 'active' THEN 0 ELSE failures END WHERE user_id = ? AND kind = ? AND state = ? AND
    """ + marked)

private let insertFactor = Statement(
    into: .factor, once: true,
    """
    INSERT INTO factor
    (id, secret, sealed_by, algorithm, digits, period, counter, address, approval, created_at, confirmed_at, operation,
    kind, state, user_id, failures)
    SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, u.id, 0 FROM user u WHERE u.id = ? AND u.operation = ?
    """)

private let auditFactor = Statement(
    Audit.columns + """
         SELECT ?, ?, ?, u.website_id, u.id, f.approval, NULL, f.kind, NULL
        FROM factor f JOIN user u ON u.id = f.user_id WHERE f.id = ? AND f.operation = ?
        """ + Audit.once)

/// From the first app or token on, as from the first phone, whatever comes further needs the user's approval. Addresses
/// and recovery codes are nobody's own in that sense.
private let prove = Statement(
    """
    UPDATE user SET proved_at = ? WHERE id = ? AND proved_at IS NULL AND EXISTS
    (SELECT 1 FROM audit WHERE operation = ? AND event = 'factor.bound' AND outcome IN ('totp', 'hotp'))
    """)

private let whyNot = Statement("SELECT state, \(counts) FROM user WHERE id = ? AND website_id = ?")

/// Without a word only what the user has approved of, or has had since the registration, or when nothing is bound yet.
private let markUserOfWaiting = Statement(
    """
    UPDATE user SET operation = ? WHERE id = ? AND state = 'active' AND codes_locked_at IS NULL AND code_failures = ?
    AND EXISTS
    (SELECT 1 FROM factor f WHERE f.id = ? AND f.user_id = user.id AND f.state = 'waiting' AND f.counter = ?
    AND (? = 1 OR user.proved_at IS NULL OR f.approval IS NOT NULL
    OR f.address = user.email OR f.address = user.phone))
    """)

private let makeActive = Statement(
    """
    UPDATE factor SET state = 'active', counter = ?, confirmed_at = ?, operation = ?
    WHERE id = ? AND state = 'waiting' AND
    """ + noted)

private let auditConfirmed = Statement(
    Audit.columns + """
         SELECT ?, ?, 'factor.bound', u.website_id, u.id, NULL, NULL, ?, 'code' FROM user u
        WHERE u.id = ? AND u.operation = ?
        """ + Audit.once)

private let moveCounter = Statement(
    """
    UPDATE factor SET counter = ?, operation = ?
    WHERE id = ? AND state = 'active' AND counter = ?
    AND EXISTS (SELECT 1 FROM user u WHERE u.id = ? AND u.id = factor.user_id AND u.state = 'active'
    AND u.codes_locked_at IS NULL AND u.code_failures = ?)
    """)

private let eventOf = Statement("SELECT event FROM audit WHERE operation = ?")
