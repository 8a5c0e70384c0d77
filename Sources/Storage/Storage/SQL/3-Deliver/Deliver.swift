import Domain
import Relay
import World

extension Store: DeliverStore {
    public func lease(_ claim: OutboxLease) async throws(StoreFailure) -> ClaimedRows<LeasedEntry> {
        // The script itself finds the entries that it leases, so they are checked when they are
        // read. The rows that an entry relies on are checked when a relay acts on it.
        let script = Script(
            "claim",
            writes: [
                BoundStatement(
                    takeDue,
                    values: [
                        .id(claim.relay), .id(claim.id), .timestamp(claim.messagesLeasedUntil),
                        .timestamp(claim.leasedUntil), .timestamp(claim.now), .id(claim.relay),
                        .integer(Int64(claim.limit)),
                    ])
            ], reads: [BoundStatement(idsOfClaimed, .id(claim.id))])
        let taken = try await run(Query(script: script) { rows in rows[0].entries })
        return try await read(taken, together: Self.claimed(claim, rows: .entries(claimed: claim.id))) {
            Self.claimed(claim, $0, rows: .entry($0))
        }
    }

    /// Reads leased entries.
    ///
    /// - Parameter errand: the entry to read; nil for all entries of the lease.
    private static func claimed(
        _ claim: OutboxLease, _ errand: OutboxEntryID? = nil, rows: SignedRows
    ) -> Query<[LeasedEntry]> {
        let read = BoundStatement(rowsOfClaim, .id(claim.id), .id(errand), .id(errand))
        return Query(script: Script("claimed", rows: [rows], reads: [read])) { rows in
            // This relay ignores a kind that only newer relays know, and leaves it to them.
            rows[0].compactMap { row in
                try? LeasedEntry(id: row.id(0), kind: row.word(1), challenge: row.optionalID(2))
            }
        }
    }

    public func push(_ entry: OutboxEntryID) async throws(StoreFailure) -> PushRow? {
        try await run(
            Query(
                script: Script(
                    "push", rows: [.entry(entry), .challenge(of: entry), .device(of: entry)],
                    reads: [BoundStatement(pushOfEntry, .id(entry))])
            ) { rows throws(StoreFailure) in
                guard let row = rows[0].first else { return nil }
                return PushRow(
                    challenge: try row.id(0), device: try row.id(8), deviceToken: try row.text(1),
                    environment: try row.word(2),
                    policy: try row.text(3), website: try row.text(4), context: try row.blob(5),
                    askedAt: try row.timestamp(9), expiresAt: try row.timestamp(6), attempts: Int(try row.integer(7)))
            })
    }

    public func settle(_ settlement: PushSettlement, as operation: Operation) async throws(StoreFailure) -> Bool {
        let outcome = settlement.reason.map { String($0.prefix(32)) } ?? "accepted"
        var writes = [
            StepSettlement.hold(settlement.challenge),
            BoundStatement(
                auditSettle, .id(operation), .timestamp(settlement.at), .text(outcome), .id(settlement.entry)),
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
                BoundStatement(
                    dropToken, .timestamp(since), .text(settlement.deviceToken), .id(settlement.entry), .id(operation)))
        }
        writes.append(StepSettlement.drop(settlement.entry, as: operation))
        return try await run(Query(change: Change("settle", operation, rows: rows, writes)) { rows in rows.happened })
    }

    public func postpone(
        _ entry: OutboxEntryID, by relay: RelayID, until: Timestamp
    ) async throws(StoreFailure) -> Bool {
        let script = Script(
            "postpone", writes: [BoundStatement(putBack, .timestamp(until), .id(entry), .id(relay))],
            reads: [BoundStatement(RetriedEntries.isThere, .id(entry), .timestamp(until))])
        return try await run(Query(script: script) { rows in !rows[0].isEmpty })
    }
}

/// Leases entries that are due. A relay may have been declared dead while it was alive, and may
/// have leased entries after its own row was deleted. Nobody would release these, so a holder
/// without a row counts as none.
private let takeDue = Statement(
    """
    UPDATE outbox SET holder = ?, lease = ?, attempts = attempts + 1,
    due_at = CASE WHEN kind IN ('mail', 'sms') THEN ? ELSE ? END
    WHERE /*S! id IN (SELECT id FROM outbox WHERE */
    due_at <= ? AND (holder IS NULL OR holder = ? OR NOT EXISTS (SELECT 1 FROM relay r WHERE r.id = outbox.holder))
    ORDER BY due_at LIMIT ? /*S! ) */
    """)

private let idsOfClaimed = Statement("SELECT id FROM outbox WHERE lease = ?")
private let rowsOfClaim = Statement(
    "SELECT id, kind, challenge_id FROM outbox WHERE lease = ? AND (? IS NULL OR id = ?)")

private let pushOfEntry = Statement(
    """
    SELECT c.id, CASE d.state WHEN 'active' THEN d.push_token ELSE '' END, d.environment, c.policy, w.display_name,
    c.context, c.expires_at, o.attempts, d.id, c.asked_at
    FROM outbox o JOIN challenge c ON c.id = o.challenge_id JOIN device d ON d.id = o.device_id
    JOIN website w ON w.id = c.website_id
    WHERE o.id = ? AND c.decided_at IS NULL
    """)

private let auditSettle = Statement(
    Audit.columns + """
         SELECT ?, ?, 'push.settled', c.website_id, c.user_id, c.id, o.device_id, ?, NULL
        FROM outbox o JOIN challenge c ON c.id = o.challenge_id WHERE o.id = ?
        """ + Audit.once)

private let dropToken = Statement(
    """
    UPDATE device SET push_token = ''
    WHERE push_token_at <= ? AND push_token = ? AND id = (SELECT o.device_id FROM outbox o WHERE o.id = ?) AND
    """ + StepSettlement.settled)

private let putBack = Statement(
    "UPDATE outbox SET holder = NULL, lease = NULL, due_at = ? WHERE id = ? AND" + RetriedEntries.isOurs)

/// Conditions for entries that are put back for a retry. A relay that was stopped for long may find
/// that another relay has leased or settled the entry.
enum RetriedEntries {
    /// The condition for an entry that the calling relay holds, or that was released and is not
    /// leased.
    static let isOurs = " (holder = ? OR holder IS NULL)"
    static let isThere = Statement("SELECT 1 FROM outbox WHERE id = ? AND holder IS NULL AND due_at = ?")
}
