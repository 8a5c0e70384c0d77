import Domain
import Relay
import World

extension Store: DeliverStore {
    public func lease(_ lease: OutboxLease) async throws(StoreFailure) -> LeasedRows<LeasedEntry> {
        // The script itself finds the entries that it leases, so they are checked when they are
        // read. The rows that an entry relies on are checked when a relay acts on it.
        let script = Script(
            "lease",
            writes: [
                leaseDue(
                    relay: .id(lease.relay), lease: .id(lease.id),
                    messagesLeasedUntil: .timestamp(lease.messagesLeasedUntil),
                    leasedUntil: .timestamp(lease.leasedUntil), now: .timestamp(lease.now),
                    skipsMails: .integer(lease.skipped.contains(.mail) ? 1 : 0),
                    skipsTexts: .integer(lease.skipped.contains(.sms) ? 1 : 0),
                    limit: .integer(Int64(lease.limit)))
            ], reads: [idsOfLease(lease: .id(lease.id))])
        let leased = try await run(Query(script: script) { rows in rows[0].entries })
        return try await read(leased, together: Self.leased(lease, rows: .entries(leased: lease.id))) {
            Self.leased(lease, $0, rows: .entry($0))
        }
    }
}

/// Leases entries that are due. A relay may have been declared dead while it was alive, and may
/// have leased entries after its own row was deleted. Nobody would release these, so a holder
/// without a row counts as none.
private let leaseDue = Statement(
    """
    UPDATE outbox SET holder = :relay, lease = :lease, attempts = attempts + 1,
    due_at = CASE WHEN kind IN ('mail', 'sms') THEN :messagesLeasedUntil ELSE :leasedUntil END
    WHERE /*S! id IN (SELECT id FROM outbox WHERE */
    due_at <= :now
    AND (holder IS NULL OR holder = :relay OR NOT EXISTS (SELECT 1 FROM relay r WHERE r.id = outbox.holder))
    AND NOT (:skipsMails = 1 AND kind = 'mail') AND NOT (:skipsTexts = 1 AND kind = 'sms')
    ORDER BY due_at LIMIT :limit /*S! ) */
    """)

private let idsOfLease = Statement("SELECT id FROM outbox WHERE lease = :lease")

extension Store {
    /// Reads leased entries.
    ///
    /// - Parameter entry: the entry to read; nil for all entries of the lease.
    private static func leased(
        _ lease: OutboxLease, _ entry: OutboxEntryID? = nil, rows: SignedRows
    ) -> Query<[LeasedEntry]> {
        let read = rowsOfLease(lease: .id(lease.id), entry: .id(entry))
        return Query(script: Script("leased", rows: [rows], reads: [read])) { rows in
            // This relay ignores a kind that only newer relays know, and leaves it to them.
            rows[0].compactMap { row in
                try? LeasedEntry(
                    id: row.id("id"), kind: row.word("kind"), challenge: row.optionalID("challenge_id"),
                    website: row.optionalID("website_id"))
            }
        }
    }
}

private let rowsOfLease = Statement(
    """
    SELECT o.id, o.kind, o.challenge_id, coalesce(c.website_id, u.website_id) AS website_id
    FROM outbox o LEFT JOIN challenge c ON c.id = o.challenge_id LEFT JOIN user u ON u.id = o.user_id
    WHERE o.lease = :lease AND (:entry IS NULL OR o.id = :entry)
    """)

extension Store {
    public func push(_ entry: OutboxEntryID) async throws(StoreFailure) -> PushRow? {
        try await run(
            Query(
                script: Script(
                    "push", rows: [.entry(entry), .challenge(of: entry), .device(of: entry)],
                    reads: [pushOfEntry(entry: .id(entry))])
            ) { rows throws(StoreFailure) in
                guard let row = rows[0].first else { return nil }
                return PushRow(
                    challenge: try row.id("challenge_id"), user: try row.id("user_id"), device: try row.id("device_id"),
                    deviceToken: try row.pushToken("push_token"), environment: try row.word("environment"),
                    policy: try row.text("policy"), website: try row.text("display_name"),
                    context: try row.context("context"), askedAt: try row.timestamp("asked_at"),
                    expiresAt: try row.timestamp("expires_at"), attempts: Int(try row.integer("attempts")))
            })
    }
}

private let pushOfEntry = Statement(
    """
    SELECT c.id AS challenge_id, c.user_id, d.id AS device_id, d.environment, c.policy, w.display_name, c.context, c.asked_at,
    c.expires_at, o.attempts, CASE d.state WHEN 'active' THEN d.push_token ELSE '' END AS push_token
    FROM outbox o JOIN challenge c ON c.id = o.challenge_id JOIN device d ON d.id = o.device_id
    JOIN website w ON w.id = c.website_id
    WHERE o.id = :entry AND c.decided_at IS NULL
    """)

extension Store {
    public func settle(_ settlement: PushSettlement, as operation: Operation) async throws(StoreFailure) -> Bool {
        let outcome = settlement.reason.map { String($0.prefix(32)) } ?? "accepted"
        var writes = [
            CascadeSteps.hold(challenge: .id(settlement.challenge)),
            auditSettle(
                operation: .id(operation), now: .timestamp(settlement.at), outcome: .text(outcome),
                entry: .id(settlement.entry)),
        ]
        writes += StepSettlement.came(
            of: settlement.entry, .push, settlement.step, settlement.reason, in: settlement.challenge,
            at: settlement.at, as: operation)
        var rows: [SignedRows] = []
        if let since = settlement.tokenDeadSince {
            // The challenge's row comes first, in the same order as in the phone's answer.
            rows = [
                .challenge(settlement.challenge).lenient,
                .device(pushedTo: settlement.entry, settledBy: operation).lenient,
            ]
            writes.append(
                dropToken.bound(
                    ["since": .timestamp(since), "entry": .id(settlement.entry), "operation": .id(operation)],
                    lists: ["token": .forms(ofPushToken: settlement.deviceToken)]))
        }
        writes.append(StepSettlement.drop(settlement.entry, as: operation))
        return try await run(Query(change: Change("settle", operation, rows: rows, writes)) { rows in rows.happened })
    }
}

private let auditSettle = Statement.audit(
    """
    INSERT INTO audit (operation, at, event, website_id, user_id, challenge_id, device_id, outcome)
    SELECT :operation, :now, 'push.settled', c.website_id, c.user_id, c.id, o.device_id, :outcome
    FROM outbox o JOIN challenge c ON c.id = o.challenge_id WHERE o.id = :entry
    \(Audit.once)
    """)

private let dropToken = Statement(
    """
    UPDATE device SET push_token = ''
    WHERE push_token_at <= :since AND \(PersonalForms.equal("push_token", "token"))
    AND id = (SELECT o.device_id FROM outbox o WHERE o.id = :entry) AND \(Guards.audited)
    """)

extension Store {
    public func postpone(
        _ entry: OutboxEntryID, by relay: RelayID, until: Timestamp
    ) async throws(StoreFailure) -> Bool {
        let script = Script(
            "postpone", writes: [putBack(dueAt: .timestamp(until), entry: .id(entry), relay: .id(relay))],
            reads: [RetriedEntries.isThere(entry: .id(entry), dueAt: .timestamp(until))])
        return try await run(Query(script: script) { rows in !rows[0].isEmpty })
    }
}

private let putBack = Statement(
    """
    UPDATE outbox SET holder = NULL, lease = NULL, due_at = :dueAt WHERE id = :entry AND \(RetriedEntries.isOurs)
    """)

/// Conditions for entries that are put back for a retry. A relay that was stopped for long may find
/// that another relay has leased or settled the entry.
enum RetriedEntries {
    /// The condition for an entry that the calling relay holds, or that was released and is not
    /// leased.
    static let isOurs = "(holder = :relay OR holder IS NULL)"

    static let isThere = Statement("SELECT 1 FROM outbox WHERE id = :entry AND holder IS NULL AND due_at = :dueAt")
}
