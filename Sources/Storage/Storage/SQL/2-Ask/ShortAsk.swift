import Domain
import Relay
import World

/// The short form of `AskScript`, for a user who can log in and has no open challenge, within the
/// limits. Nothing is superseded, and all rows are known before they are written.
extension AskScript {
    var short: ShortForm {
        let pushed = challenge.pushes.isEmpty ? [] : [readPhones(user: user, known: known, since: since)]
        return ShortForm(
            subjects: [challenge.user.bytes]
                + (claim.map { [$0.request.website.bytes + $0.request.digest] } ?? []),
            rows: [.user(challenge.user).signed, .website(challenge.website)]
                + (claim.map { [.idempotency($0.request.website, $0.request.digest).signed] } ?? []),
            reads: [
                readLogins(user: user, now: .timestamp(challenge.askedAt), known: known, since: since)
            ] + pushed,
            decide: shortWrites, guarded: { guarded })
    }

    /// Finds the change of a claim whose COMMIT may still run on a lost connection.
    var committedClaim: BoundStatement { findCommitted(operation: .id(operation)) }

    private var user: SQLValue { .id(challenge.user) }
    private var known: SQLValue { .origin(limits.origin) }
    private var since: SQLValue { .timestamp(limits.since) }

    @Sendable private func shortWrites(_ reading: ShortReading) throws(StoreFailure) -> ShortWrites? {
        // Somebody else has claimed the key.
        if claim != nil, !reading.rows[2].isEmpty { return nil }
        guard !challenge.life.state.isEnd, let user = reading.rows[0].first, let website = reading.rows[1].first,
            user.isUser(of: challenge.website), user.mayLogIn(at: challenge.askedAt), website.isActiveWebsite,
            let logins = reading.reads[0].first, try logins.integer("open_count") == 0,
            try logins.integer("login_count") < limits.logins
        else { return nil }
        let pushes = try affordablePushes(reading.reads.dropFirst().first)
        let factor = pushes.isEmpty ? challenge.otherwise : .push
        var writes = [ShortWrite(marked(user, reading), mustMatch: true)]
        writes.append(ShortWrite(try reading.signed(row(factor))))
        if let factor { writes.append(ShortWrite(firstStep(factor))) }
        for entry in entries(pushes) { writes.append(ShortWrite(try reading.signed(entry))) }
        if let claim { writes.append(ShortWrite(try reading.signed(claimed(claim, factor)))) }
        writes.append(ShortWrite(audit(factor)))
        return ShortWrites(writes: writes, answer: answer(factor, pushes))
    }

    /// Returns the pushes to phones that are still active, or none beyond the limit.
    private func affordablePushes(_ phones: Rows?) throws(StoreFailure) -> [NewChallenge.PushEntry] {
        guard let phones else { return [] }
        var active: Set<DeviceID> = []
        for phone in phones where try phone.integer("push_count") < limits.pushes { active.insert(try phone.id("id")) }
        return challenge.pushes.filter { active.contains($0.device) }
    }
}

/// In MariaDB the lock waits for a running COMMIT.
private let findCommitted = Statement("SELECT at FROM audit WHERE operation = :operation /*M! FOR UPDATE */")

/// Reads the user's open challenges, and those that count against the limit.
private let readLogins = Statement(
    """
    SELECT (SELECT count(*) FROM challenge c WHERE c.user_id = :user AND c.decided_at IS NULL AND c.expires_at > :now)
    AS open_count,
    (SELECT count(*) FROM challenge c WHERE c.user_id = :user AND c.known = :known AND c.asked_at > :since)
    AS login_count
    """)

/// Reads the user's active phones, and the challenges that count against the limit of pushes.
private let readPhones = Statement(
    """
    SELECT d.id, (SELECT count(*) FROM challenge c JOIN step s ON s.challenge_id = c.id
    WHERE c.user_id = :user AND c.known = :known AND c.asked_at > :since AND s.factor = 'push'
    AND coalesce(s.reason, '') <> 'late') AS push_count
    FROM device d WHERE d.user_id = :user AND d.state = 'active'
    """)

/// The rows that the short form writes.
extension AskScript {
    /// Names the challenge in the row of its user, which is written under the same rights.
    private func marked(_ user: CheckedRow, _ reading: ShortReading) -> BoundStatement {
        var values = user.values
        values[SignedTable.UserColumns.challenge] = .id(challenge.id)
        return markUser(
            challenge: .id(challenge.id), operation: .id(operation),
            mac: reading.mac(of: values, in: .user, rights: user.rights), user: self.user, seen: .blob(user.mac))
    }

    private func row(_ factor: Factor?) -> NewRow {
        insertChallenge(
            id: .id(challenge.id), website_id: .id(challenge.website), user_id: user,
            state: .word(challenge.life.state), reason: .word(challenge.life.reason), policy: .text(challenge.policy),
            context: .context(challenge.context), nonce: .blob(challenge.nonce), number: .text(challenge.number),
            approves: .blob(challenge.approves), language: .text(challenge.language),
            trace: .text(challenge.trace?.text), known: known, factor: .word(factor),
            asked_at: .timestamp(challenge.askedAt), expires_at: .timestamp(challenge.life.expiresAt),
            operation: .id(operation))
    }

    private func firstStep(_ factor: Factor) -> BoundStatement {
        let state: StepState = factor == .push || factor == .pull ? .queued : .sent
        return insertStep(
            challenge: .id(challenge.id), factor: .word(factor), state: .word(state),
            now: .timestamp(challenge.askedAt))
    }

    private func entries(_ pushes: [NewChallenge.PushEntry]) -> [NewRow] {
        var rows = pushes.map { push in
            insertEntry(
                id: .id(push.id), kind: .text("push"), challenge_id: .id(challenge.id), device_id: .id(push.device),
                due_at: .timestamp(push.leasedUntil), attempts: .integer(0), holder: .id(push.holder))
        }
        rows.append(
            insertEntry(
                id: .id(challenge.expiry), kind: .text("expiry"), challenge_id: .id(challenge.id), device_id: .null,
                due_at: .timestamp(challenge.life.expiresAt), attempts: .integer(0), holder: .null))
        if let next = challenge.next {
            rows.append(
                insertEntry(
                    id: .id(next.id), kind: .text("next"), challenge_id: .id(challenge.id), device_id: .null,
                    due_at: .timestamp(next.due), attempts: .integer(0), holder: .id(next.holder)))
        }
        return rows
    }

    /// Claims the idempotency key, with the answer.
    private func claimed(_ claim: IdempotencyClaim, _ factor: Factor?) throws(StoreFailure) -> NewRow {
        let kept: StoredResponse
        do {
            kept = try claim.response(factor)
        } catch {
            throw .internal("the answer cannot be sealed: \(error)")
        }
        return insertClaim(
            website_id: .id(claim.request.website), digest: .blob(claim.request.digest),
            fingerprint: .blob(claim.request.fingerprint), state: .word(kept.state), operation: .id(operation),
            status: .integer(Int64(kept.status)), answer: .blob(kept.sealed),
            created_at: .timestamp(claim.createdAt))
    }

    private func audit(_ factor: Factor?) -> BoundStatement {
        auditAsk(
            operation: .id(operation), now: .timestamp(challenge.askedAt), website: .id(challenge.website), user: user,
            challenge: .id(challenge.id), outcome: .word(factor))
    }

    /// Returns the results that `reads` would have.
    private func answer(_ factor: Factor?, _ pushes: [NewChallenge.PushEntry]) -> [Rows] {
        let life = challenge.life
        return [
            Audit.happened(at: .timestamp(challenge.askedAt)),
            Rows(
                storedColumns,
                [
                    .word(life.state), .word(life.decision), .word(life.reason), .timestamp(life.expiresAt),
                    .word(factor), .text(challenge.number),
                ]),
            Rows(pushColumns, pushes.map { .id($0.id) }), .none, .none,
        ]
    }
}

private let storedColumns = ResultColumns(
    ["state", "decision", "reason", "expires_at", "factor", "number"], of: "the short form of ask")
private let pushColumns = ResultColumns(["id"], of: "the short form of ask")

private let markUser = Statement(
    """
    UPDATE user SET challenge_id = :challenge, operation = :operation, mac = :mac
    WHERE id = :user AND mac = :seen AND state = 'active'
    """)

/// An open challenge has the right that it is not decided.
private let insertChallenge = SignedInsertion(
    into: .challenge,
    [
        "id", "website_id", "user_id", "state", "reason", "policy", "context", "nonce", "number", "approves",
        "language", "trace", "known", "factor", "asked_at", "expires_at", "operation",
    ], rights: 1)

private let insertStep = Statement(
    "INSERT INTO step (challenge_id, ordinal, factor, state, at) VALUES (:challenge, 1, :factor, :state, :now)")

private let insertEntry = SignedInsertion(
    into: .outbox, ["id", "kind", "challenge_id", "device_id", "due_at", "attempts", "holder"])

private let insertClaim = SignedInsertion(
    into: .idempotency,
    ["website_id", "digest", "fingerprint", "state", "operation", "status", "answer", "created_at"])

private let auditAsk = Statement.audit(
    """
    INSERT INTO audit (operation, at, event, website_id, user_id, challenge_id, outcome)
    VALUES (:operation, :now, 'challenge.asked', :website, :user, :challenge, :outcome)
    \(Audit.once)
    """)
