import Domain
import Relay
import World

/// The short form of `CloseScript`, for the usual approval: the phone that was asked approves an
/// open challenge of its active user, and nothing else follows from it.
extension CloseScript {
    /// The short form; nil if the end is of another kind.
    var short: ShortForm? {
        guard closing.life.state == .answered, closing.life.decision == .approve, closing.proof != nil,
            let factor = closing.factor, let phone = closing.device, phone.failures == 0, closing.code == nil,
            !closing.isApproval, closing.pin == nil, closing.posture?.relied == nil
        else { return nil }
        let approval = ShortApproval(closing: closing, phone: phone, factor: factor, operation: operation)
        return ShortForm(
            subjects: [phone.user.bytes],
            rows: [
                .user(phone.user).signed, .challenge(closing.challenge).signed, .device(phone.id).signed,
                .website(phone.website.id),
            ], reads: [readSteps(challenge: challenge)], decide: approval.writes,
            guarded: { guarded(with: nil) })
    }
}

private let readSteps = Statement("SELECT factor, state FROM step WHERE {challenge_id = :challenge}")

/// An approval by a phone, and the rows that it writes.
private struct ShortApproval: Sendable {
    let closing: ChallengeEnd
    let phone: PhoneCredential
    let factor: Factor
    let operation: Operation

    private var now: SQLValue { .timestamp(closing.at) }
    private var id: SQLValue { .id(closing.challenge) }

    @Sendable func writes(_ reading: ShortReading) throws(StoreFailure) -> ShortWrites? {
        guard let user = reading.rows[0].first, let challenge = reading.rows[1].first,
            let device = reading.rows[2].first, let website = reading.rows[3].first,
            user.mayLogIn(at: closing.at), challenge.isOpenChallenge(of: phone.user, at: closing.at),
            challenge.isChallenge(of: phone.website.id), device.isActivePhone(of: phone.user, key: phone.key),
            reading.isCurrent(user), reading.isCurrent(device),
            try isAsked(reading.reads[0])
        else { return nil }
        var writes = [
            ShortWrite(try end(challenge, reading), mustMatch: true),
            ShortWrite(endSteps(factor: .word(factor), now: now, challenge: id)),
            ShortWrite(seePhone(now: now, device: .id(phone.id), key: .blob(phone.key)), mustMatch: true),
            ShortWrite(dropEntries(challenge: id)),
        ]
        if website.values[SignedTable.WebsiteColumns.webhook] != .null {
            writes.append(ShortWrite(try reading.signed(decided)))
        }
        writes.append(
            ShortWrite(
                auditEnd(
                    operation: .id(operation), now: now, event: .text("\(closing.event)"),
                    website: .id(phone.website.id), user: .id(phone.user), challenge: id, device: .id(phone.id),
                    outcome: .word(closing.life.decision), proof: .word(closing.proof))))
        return ShortWrites(writes: writes, answer: [Audit.happened(at: now)])
    }

    /// Whether the factor of the answer is the one that waits for it.
    private func isAsked(_ steps: Rows) throws(StoreFailure) -> Bool {
        var isAsked = false
        for step in steps {
            let state: StepState = try step.word("state")
            if state == .answered { return false }
            if try step.text("factor") == factor.rawValue, [.queued, .sent, .seen].contains(state) { isAsked = true }
        }
        return isAsked
    }

    /// Ends the challenge. The MAC covers the columns of an approval in the order of the table.
    private func end(_ challenge: CheckedRow, _ reading: ShortReading) throws(StoreFailure) -> BoundStatement {
        let receipt = try reading.written(.receipt(closing.receipt))
        let check = SQLValue.word(closing.place?.check)
        let distance = SQLValue.integer((closing.place?.distance).map { Int64($0) })
        let attested = SQLValue.text(closing.posture?.answer.facts)
        let assertion = SQLValue.text(closing.assertion)
        let approved: [SQLValue] = [
            .word(factor), .word(closing.proof), .id(phone.id), receipt, .word(closing.uv), check, distance, attested,
            assertion, now, .id(operation),
        ]
        let covered = challenge.values.dropLast(approved.count) + approved
        return approve(
            state: .word(closing.life.state), reason: .word(closing.life.reason), factor: .word(factor),
            proof: .word(closing.proof), now: now, operation: .id(operation), device: .id(phone.id), receipt: receipt,
            uv: .word(closing.uv), placeCheck: check, placeDistance: distance, attested: attested,
            assertion: assertion,
            mac: reading.mac(of: Array(covered), in: .challenge, rights: SignedTable.ChallengeRights.approved),
            challenge: id, seen: .blob(challenge.mac))
    }

    /// The entry of `login.decided`.
    private var decided: NewRow {
        insertDecided(
            id: id, kind: .text(WebhookRows.kind), event: .text("login.decided"), ordinal: .integer(0),
            user_id: .id(phone.user), website_id: .id(phone.website.id), challenge_id: id, created_at: now,
            expires_at: .timestamp(closing.at + WebhookRows.life), webhook_due_at: now, attempts: .integer(0))
    }
}

private let approve = Statement(
    """
    UPDATE challenge SET state = :state, decision = 'approve', reason = :reason, factor = :factor, proof = :proof,
    decided_at = :now, operation = :operation, device_id = :device, receipt = :receipt, uv = :uv,
    place_check = :placeCheck, place_distance = :placeDistance, attested = :attested, assertion = :assertion, mac = :mac
    WHERE id = :challenge AND mac = :seen AND decided_at IS NULL AND expires_at > :now
    """)

private let endSteps = Statement(
    """
    UPDATE step SET state = CASE WHEN factor = :factor THEN 'answered' ELSE 'skipped' END, at = :now
    WHERE challenge_id = :challenge AND state IN ('queued', 'sent', 'seen')
    """)

/// Counts the answer of the phone. Its failure count is as it was judged.
private let seePhone = Statement(
    """
    UPDATE device SET last_seen_at = :now, login_successes = login_successes + 1
    WHERE id = :device AND thumbprint = :key AND state = 'active' AND failures = 0
    """)

private let dropEntries = Statement(
    "DELETE FROM outbox WHERE challenge_id = :challenge AND \(OutboxRows.exceptWebhooks)")

private let insertDecided = SignedInsertion(
    into: .outbox,
    [
        "id", "kind", "event", "ordinal", "user_id", "website_id", "challenge_id", "created_at", "expires_at",
        "webhook_due_at", "attempts",
    ])

private let auditEnd = Statement.audit(
    """
    INSERT INTO audit (operation, at, event, website_id, user_id, challenge_id, device_id, outcome, proof)
    VALUES (:operation, :now, :event, :website, :user, :challenge, :device, :outcome, :proof)
    \(Audit.once)
    """)
