import Domain
import Relay
import World

extension Store: FactorStore {
    public func factors(of user: UserID, at now: Timestamp) async throws(StoreFailure) -> [CodeFactor] {
        let read = factorsOfUser(user: .id(user), now: .timestamp(now))
        return try await run(
            Query(script: Script("factors", rows: [.factors(of: user)], reads: [read])) { rows throws(StoreFailure) in
                var factors: [CodeFactor] = []
                for row in rows[0] { factors.append(try CodeFactors.read(row)) }
                return factors
            })
    }
}

/// Leaves out what a recovery has created that has ended since, the codes of a phone that SQL has
/// stopped, and a temporary code that has ended.
private let factorsOfUser = Statement(
    """
    SELECT \(CodeFactors.columns) FROM factor f
    WHERE f.user_id = :user AND \(CodeFactors.isOfActivePhone) AND \(CodeFactors.isUsable) AND NOT EXISTS
    (SELECT 1 FROM recovery r WHERE r.id = f.approval AND f.state = 'waiting'
    AND (r.state <> 'proved' OR r.expires_at <= :now))
    ORDER BY f.created_at, f.id
    """)

extension Store {
    public func enrol(
        _ enrolling: FactorEnrolment, website: WebsiteID, as operation: Operation
    ) async throws(StoreFailure) -> EnrolOutcome {
        let factor = enrolling.factor
        var writes = [
            Locks.hold(user: .id(factor.user)),
            markUser(
                operation: .id(operation), user: .id(factor.user), website: .id(website),
                isVouchedFor: .bool(enrolling.isVouchedFor), mayReplace: .bool(enrolling.mayReplace),
                kind: .word(factor.kind), now: .timestamp(factor.at)),
        ]
        writes += OperationSecrets.onlyOnce(factor.user, as: operation)
        writes += Recoveries.required(factor.recovery, of: factor.user, factor.kind, as: operation)
        if let approved = factor.approvedBy {
            writes += Approvals.required(approved, of: factor.user, at: factor.at, as: operation)
        }
        writes += Factors.written(factor, as: operation)
        writes += RecoveryRows.replaced(enrolling, as: operation)
        writes += Factors.codeUseRecorded(
            factor, factor.state == .active ? "factor.bound" : "factor.waiting", as: operation)
        writes += OperationSecrets.stored(enrolling.secret, as: operation)
        if factor.state == .active {
            writes += Recoveries.finished(factor.recovery, of: factor.user, at: factor.at, as: operation)
        }
        let approval = factor.approvedBy.map { [SignedRows.challenge($0.challenge).signed] } ?? []
        let change = Change(
            "enrol", operation,
            rows: [.user(factor.user).signed] + approval + Factors.rows(factor) + RecoveryRows.rows(enrolling)
                + Recoveries.rows(factor.recovery, as: operation), writes,
            reads: [
                OperationSecrets.read(operation.id),
                whyNot(
                    kind: .word(factor.kind), user: .id(factor.user), website: .id(website), now: .timestamp(factor.at)),
            ])
        return try await run(
            Query(change: change) { rows throws(StoreFailure) in
                if rows.happened { return .done(secret: try rows[1].operationSecret) }
                guard let row = rows[2].first else { return .gone }
                let state: UserState = try row.word("state")
                guard state == .active else { return .barred(state) }
                return try row.bool("has_factor") && !enrolling.mayReplace ? .taken : .refused
            })
    }
}

/// Marks the user's row. Without an approval of the user or the website, this is possible only if
/// the user has not proved a factor yet. It is possible only while the user is active: not locked,
/// frozen, disabled or expired.
private let markUser = Statement(
    """
    UPDATE user SET operation = :operation WHERE id = :user AND website_id = :website AND \(Guards.userMayLogIn)
    AND (:isVouchedFor = 1 OR proved_at IS NULL) AND (:mayReplace = 1 OR NOT \(hasFactor(of: "user")))
    """)

private let whyNot = Statement(
    """
    SELECT \(Guards.userState) AS state, \(hasFactor(of: "u")) AS has_factor
    FROM user u WHERE u.id = :user AND u.website_id = :website
    """)

private func hasFactor(of user: String) -> String {
    "EXISTS (SELECT 1 FROM factor f WHERE f.user_id = \(user).id AND f.kind = :kind AND f.state = 'active')"
}

extension Store {
    public func confirm(
        _ factor: CodeFactor, of user: UserID, failures: Int, counter: Int64, isVouchedFor: Bool, at now: Timestamp,
        as operation: Operation
    ) async throws(StoreFailure) -> CodeUseOutcome {
        let writes = Factors.confirmed(
            factor, of: user, failures: failures, counter: counter, hasWord: isVouchedFor, at: now, as: operation)
        let rows = Factors.rows(confirming: factor, of: user, at: now, as: operation)
        let change = Change("confirm", operation, rows: rows, writes)
        return try await run(Query(change: change) { rows in rows.happened ? .done : .changed })
    }

    public func resynchronise(
        _ factor: CodeFactor, of user: UserID, failures: Int, counter: Int64, at now: Timestamp,
        as operation: Operation
    ) async throws(StoreFailure) -> CodeUseOutcome {
        try await move(factor, of: user, failures: failures, to: counter, "factor.resynced", at: now, as: operation)
    }

    public func use(
        _ factor: CodeFactor, of user: UserID, failures: Int, step: Int64, at now: Timestamp, as operation: Operation
    ) async throws(StoreFailure) -> CodeUseOutcome {
        try await move(factor, of: user, failures: failures, to: step, "factor.used", at: now, as: operation)
    }

    private func move(
        _ factor: CodeFactor, of user: UserID, failures: Int, to counter: Int64, _ event: String, at now: Timestamp,
        as operation: Operation
    ) async throws(StoreFailure) -> CodeUseOutcome {
        let change = Change(
            "code", operation, rows: [.user(user).signed, .factor(factor.id).signed],
            [
                Locks.hold(user: .id(user)),
                moveCounter(
                    next: .integer(counter), operation: .id(operation), factor: .id(factor.id),
                    counter: .integer(factor.counter), user: .id(user), now: .timestamp(now),
                    failures: .integer(Int64(failures))),
                Factors.audit(factor.id, event, at: now, as: operation),
            ] + CodeFailures.right(factor.id, of: user, at: now, as: operation))
        return try await run(Query(change: change) { rows in rows.happened ? .done : .changed })
    }
}

private let moveCounter = Statement(
    """
    UPDATE factor SET counter = :next, resync_since = NULL, operation = :operation
    WHERE id = :factor AND state = 'active' AND counter = :counter
    AND EXISTS (SELECT 1 FROM user u WHERE u.id = :user AND u.id = factor.user_id AND \(Guards.mayLogIn)
    AND u.codes_locked_at IS NULL AND u.code_failures = :failures)
    """)

extension Store {
    public func drop(
        _ kind: Factor, of user: UserID, by doer: ChangeAuthor, at now: Timestamp, as operation: Operation
    ) async throws(StoreFailure) -> Bool {
        try await run(Factors.drop(kind, of: user, by: doer, at: now, as: operation))
    }

    public func unlock(
        _ user: UserID, recovery digest: [UInt8], of factor: FactorID, failures: Int,
        lifting lifted: ChangedValues = ChangedValues(), at now: Timestamp, as operation: Operation
    ) async throws(StoreFailure) -> Bool {
        let change = Change(
            "unlock", operation,
            rows: [.user(user).signed, .factor(factor), .recoveryCode(digest, of: user).signed],
            [
                Locks.hold(user: .id(user)),
                RecoveryRows.activate(user, by: digest, of: factor, failures: failures, as: operation),
            ]
                + [RecoveryRows.used(digest, of: user, at: now, as: operation)]
                + Locks.unlocked(user, lifting: lifted, by: .code, at: now, as: operation)
                + CodeFailures.right(factor, of: user, at: now, as: operation))
        return try await run(Query(change: change) { rows in rows.happened })
    }

    public func recordCodeUse(_ operation: OperationID) async throws(StoreFailure) -> String? {
        try await run(
            Query(script: Script("noted", reads: [eventOf(operation: .id(operation))])) {
                rows throws(StoreFailure) in
                try rows[0].first?.text("event")
            })
    }
}

private let eventOf = Statement("SELECT event FROM audit WHERE operation = :operation")
