import Domain
import Relay
import World

extension Store: MessageStore {
    public func message(_ entry: OutboxEntryID) async throws(StoreFailure) -> MessageRow? {
        try await run(
            Query(
                script: Script(
                    "message", rows: Messages.rows(entry), reads: [BoundStatement(messageOfEntry, .id(entry))])
            ) { rows throws(StoreFailure) in try rows[0].first?.message(entry) })
    }

    public func settle(_ settlement: MessageSettlement, as operation: Operation) async throws(StoreFailure) -> Bool {
        let errand = SQLValue.id(settlement.entry)
        let outcome = settlement.reason.map { String($0.prefix(32)) } ?? "accepted"
        let event = "\(settlement.kind.rawValue).\(settlement.isDead ? "dead" : "settled")"
        var writes = settlement.challenge.map { [StepSettlement.hold($0)] } ?? []
        writes.append(
            BoundStatement(
                auditSettle, .id(operation), .timestamp(settlement.at), .text(event), .text(outcome), errand))
        if let challenge = settlement.challenge {
            writes += StepSettlement.came(
                of: settlement.entry, settlement.kind == .mail ? .mail : .sms, settlement.step, settlement.reason,
                in: challenge, at: settlement.at, as: operation)
        }
        writes.append(
            settlement.isDead
                ? BoundStatement(die, .timestamp(settlement.at), .text(settlement.reason), errand, .id(operation))
                : StepSettlement.drop(settlement.entry, as: operation))
        return try await run(Query(change: Change("settle", operation, writes)) { rows in rows.happened })
    }

    public func postpone(_ pause: MessageRetry, by relay: RelayID) async throws(StoreFailure) -> Bool {
        let script = Script(
            "postpone",
            writes: [
                BoundStatement(
                    putBack, .timestamp(pause.until), .text(pause.reason), .timestamp(pause.ambiguousAt),
                    .id(pause.entry),
                    .id(relay))
            ], reads: [BoundStatement(RetriedEntries.isThere, .id(pause.entry), .timestamp(pause.until))])
        return try await run(Query(script: script) { rows in !rows[0].isEmpty })
    }

    public func backlog(at now: Timestamp) async throws(StoreFailure) -> Backlog {
        let script = Script("backlog", reads: [BoundStatement(oldestDue, .timestamp(now)), BoundStatement(countDead)])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                Backlog(oldestDue: try rows[0].first?.timestamp(0), dead: try rows[1].first?.integer(0) ?? 0)
            })
    }
}

private enum Messages {
    /// The rows that determine the content and the recipient. A row that is not genuine stops only
    /// this message.
    static func rows(_ errand: OutboxEntryID) -> [SignedRows] {
        [
            .entry(errand), .user(of: errand), .website(of: errand), .challenge(of: errand), .factor(of: errand),
            .address(of: errand),
        ]
    }
}

extension Row {
    fileprivate func message(_ id: OutboxEntryID) throws(StoreFailure) -> MessageRow {
        let content: MessageRow.Content
        let counter = try optionalInteger(16)
        let lacksFactor = try isNull(17)
        if let announcement: AccountEvent = try optionalWord(7) {
            content = .announcement(announcement, device: try optionalText(8))
        } else if let counter, !lacksFactor {
            content = .code(try CodeFactors.read(self), counter: counter, context: try optionalBlob(9))
        } else {
            content = .nothing
        }
        return MessageRow(
            id: id, kind: try word(0), user: try self.id(1), website: try self.id(2), challenge: try optionalID(3),
            websiteName: try text(4), userName: try optionalText(5), language: try optionalText(6),
            address: try optionalText(10), content: content, createdAt: try timestamp(11), expiresAt: try timestamp(12),
            attempts: Int(try integer(13)), reason: try optionalText(14), ambiguousAt: try optionalTimestamp(15),
            deadline: try optionalTimestamp(31))
    }
}

/// Reads a message with its address. An account event goes to the user's active factor at that
/// time, or else to the address that the website registered.
private let messageOfEntry = Statement(
    """
    SELECT o.kind, u.id, u.website_id, o.challenge_id, w.display_name, u.display_name, coalesce(o.language, u.language),
    o.event, d.name, c.context, coalesce(o.address, m.address, CASE o.kind WHEN 'mail' THEN u.email END),
    o.created_at, o.expires_at, o.attempts, o.reason, o.ambiguous_at, o.counter,
    """ + CodeFactors.columns + """
        , (SELECT min(n.due_at) FROM outbox n WHERE n.challenge_id = o.challenge_id AND n.kind = 'next')
        FROM outbox o JOIN user u ON u.id = o.user_id JOIN website w ON w.id = u.website_id
        LEFT JOIN challenge c ON c.id = o.challenge_id LEFT JOIN device d ON d.id = o.device_id
        LEFT JOIN factor f ON f.id = o.factor_id
        LEFT JOIN factor m ON m.user_id = o.user_id AND m.kind = o.kind AND m.state = 'active'
        WHERE o.id = ? AND o.dead_at IS NULL AND c.decided_at IS NULL
        """)

private let auditSettle = Statement(
    Audit.columns + """
         SELECT ?, ?, ?, u.website_id, u.id, o.challenge_id, o.device_id, ?, NULL
        FROM outbox o JOIN user u ON u.id = o.user_id WHERE o.id = ? AND o.dead_at IS NULL
        """ + Audit.once)

private let die = Statement(
    """
    UPDATE outbox SET dead_at = ?, reason = ?, due_at = NULL, holder = NULL, lease = NULL WHERE id = ? AND
    """ + StepSettlement.settled)

private let oldestDue = Statement("SELECT due_at FROM outbox WHERE due_at <= ? ORDER BY due_at LIMIT 1")

/// Counts dead letters. The index of entries without a due time is sufficient for that.
private let countDead = Statement("SELECT count(*) FROM outbox WHERE due_at IS NULL AND dead_at IS NOT NULL")

private let putBack = Statement(
    "UPDATE outbox SET holder = NULL, lease = NULL, due_at = ?, reason = ?, ambiguous_at = ? WHERE id = ? AND"
        + RetriedEntries.isOurs)
