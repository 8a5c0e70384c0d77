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

    /// The rows that `confirmed` relies on and writes. The user's row comes first, because other
    /// changes of the user wait for it.
    static func rows(confirming factor: CodeFactor, of user: UserID) -> [SignedRows] {
        [.user(user).signed, .factor(factor.id).signed] + rows(voiding: factor.kind, of: user)
    }

    /// Writes the factor's row for a user whose row this operation has marked. It replaces the
    /// factor of the same kind and state. Wrong codes stay counted. No right code clears those of a
    /// replaced active factor; the first right code clears those of a replaced waiting one.
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

    /// The row that `written` writes. The factor keeps nothing of a row that it replaces, so that
    /// row need not be genuine. `codeUseRecorded` also writes the user's row, and the script that
    /// marks this row declares it.
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

/// Marks the user's row. Without an approval of the user or the website, this is possible only if
/// the user has not proved a factor yet. It is not possible while the user is locked or frozen.
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

/// Records that the user has proved a factor. After the first app or token, as after the first
/// phone, each further factor needs the user's approval. Addresses and recovery codes do not count
/// as proof.
private let prove = Statement(
    """
    UPDATE user SET proved_at = ? WHERE id = ? AND proved_at IS NULL AND EXISTS
    (SELECT 1 FROM audit WHERE operation = ? AND event = 'factor.bound' AND outcome IN ('totp', 'hotp'))
    """)

private let whyNot = Statement("SELECT state, \(counts) FROM user WHERE id = ? AND website_id = ?")

/// Marks the row of a user with a waiting factor. Without an approval by the website, the user must
/// have approved the factor, have registered with the address, or have not proved a factor yet.
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
