import Domain
import Relay
import World

extension Store: MessageStore {
    public func message(_ entry: OutboxEntryID, of relay: RelayID) async throws(StoreFailure) -> MessageRow? {
        let read = messageOfEntry(entry: .id(entry), relay: .id(relay))
        let script = Script("message", rows: Messages.rows(entry), reads: [read])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in try rows[0].first?.message(entry) })
    }
}

private enum Messages {
    /// The rows that determine the content and the recipient. A row that is not genuine stops only
    /// this message.
    static func rows(_ entry: OutboxEntryID) -> [SignedRows] {
        [
            .entry(entry), .user(of: entry), .website(of: entry), .challenge(of: entry), .factor(of: entry),
            .address(of: entry), .recovery(mailedBy: entry),
        ]
    }
}

/// Reads a message with its address. An account event goes to the user's active factor at that
/// time, or else to the address that the website registered.
private let messageOfEntry = Statement(
    """
    SELECT o.kind, u.id AS user_id, u.website_id, o.challenge_id, w.display_name AS website_name,
    u.display_name AS user_name, coalesce(o.language, u.language) AS language, o.event, d.name AS device_name, c.context,
    coalesce(o.address, m.address, CASE o.kind WHEN 'mail' THEN u.email END) AS address,
    CASE WHEN coalesce(o.address, m.address) = m.address THEN 1 ELSE 0 END AS is_to_factor,
    o.created_at, o.expires_at, o.attempts, o.reason, o.ambiguous_at, o.counter, u.token, w.name AS website_key,
    s.sealed AS activation_secret, w.policy AS website_policy, r.id AS recovery_id, r.factor AS lost_factor,
    r.state AS recovery_state, r.ready_at, r.expires_at AS recovery_expires_at, r.announced_at, \(CodeFactors.columns),
    (SELECT min(n.due_at) FROM outbox n WHERE n.challenge_id = o.challenge_id AND n.kind = 'next') AS deadline
    FROM outbox o JOIN user u ON u.id = o.user_id JOIN website w ON w.id = u.website_id
    LEFT JOIN challenge c ON c.id = o.challenge_id LEFT JOIN device d ON d.id = o.device_id
    LEFT JOIN factor f ON f.id = o.factor_id LEFT JOIN operation_secret s ON s.operation = o.id
    LEFT JOIN recovery r ON r.id = o.recovery_id
    LEFT JOIN factor m ON m.user_id = o.user_id AND m.kind = o.kind AND m.state = 'active'
    WHERE o.id = :entry AND o.holder = :relay AND o.dead_at IS NULL AND c.decided_at IS NULL
    """)

extension Row {
    /// Reads the columns of `messageOfEntry`.
    fileprivate func message(_ id: OutboxEntryID) throws(StoreFailure) -> MessageRow {
        let content: MessageRow.Content
        let counter = try optionalInteger("counter")
        let lacksFactor = try isNull("factor_id")
        if try optionalText("event") == ActivationMail.event {
            content = try activation()
        } else if let event = try optionalText("event"),
            [RecoveryMail.link, AccountEvent.recoveryWaiting.rawValue].contains(event)
        {
            content = try recovery(event)
        } else if let announcement: AccountEvent = try optionalWord("event") {
            content = .announcement(announcement, device: try optionalText("device_name"))
        } else if let counter, !lacksFactor {
            content = .code(try CodeFactors.read(self), counter: counter, context: try optionalContext("context"))
        } else {
            content = .nothing
        }
        return MessageRow(
            id: id, kind: try word("kind"), user: try self.id("user_id"), token: try self.id("token"),
            website: try self.id("website_id"), websiteKey: try text("website_key"),
            websitePolicy: try text("website_policy"), isToFactor: try bool("is_to_factor"),
            challenge: try optionalID("challenge_id"),
            websiteName: try text("website_name"),
            userName: try optionalText("user_name"), language: try optionalText("language"),
            address: try optionalAddress("address"), content: content, createdAt: try timestamp("created_at"),
            expiresAt: try timestamp("expires_at"), attempts: Int(try integer("attempts")),
            reason: try optionalText("reason"), ambiguousAt: try optionalTimestamp("ambiguous_at"),
            deadline: try optionalTimestamp("deadline"))
    }
}

extension Row {
    fileprivate func recovery(_ event: String) throws(StoreFailure) -> MessageRow.Content {
        guard let sealed = try optionalBlob("activation_secret"), let id: RecoveryID = try optionalID("recovery_id")
        else { return .nothing }
        let life = RecoveryLife(
            state: try word("recovery_state"), readyAt: try optionalTimestamp("ready_at"),
            expiresAt: try timestamp("recovery_expires_at"), announcedAt: try optionalTimestamp("announced_at"))
        // Another mail tells of a cancelled one.
        guard life.state != .cancelled else { return .nothing }
        return .recovery(
            MailedRecovery(
                id: id, event: event, lost: try word("lost_factor"), life: life, policy: try text("website_policy"),
                sealed: sealed))
    }

    fileprivate func activation() throws(StoreFailure) -> MessageRow.Content {
        guard let sealed = try optionalBlob("activation_secret") else { return .nothing }
        return .activation(try id("token"), website: try text("website_key"), sealed: sealed)
    }
}

extension Store {
    public func settle(_ settlement: MessageSettlement, as operation: Operation) async throws(StoreFailure) -> Bool {
        let entry = SQLValue.id(settlement.entry)
        let outcome = settlement.reason.map { String($0.prefix(32)) } ?? "accepted"
        let event = "\(settlement.kind.rawValue).\(settlement.isDead ? "dead" : "settled")"
        var writes = settlement.challenge.map { [CascadeSteps.hold(challenge: .id($0))] } ?? []
        writes.append(
            auditSettle(
                operation: .id(operation), now: .timestamp(settlement.at), event: .text(event),
                outcome: .text(outcome), entry: entry))
        if let challenge = settlement.challenge {
            writes += StepSettlement.came(
                of: settlement.entry, settlement.kind == .mail ? .mail : .sms, settlement.step, settlement.reason,
                in: challenge, at: settlement.at, as: operation)
        }
        var rows: [SignedRows] = []
        if let announced = settlement.announced {
            writes.insert(Locks.hold(user: .id(announced.user)), at: 0)
            writes.append(Recoveries.announced(announced, as: operation))
            rows.append(.recovery(announced.recovery).signed)
        }
        if settlement.dropsSecret {
            writes.append(OperationSecrets.dropped(ActivationMail.row(of: settlement.entry)))
        }
        writes.append(
            settlement.isDead
                ? die(
                    now: .timestamp(settlement.at), reason: .text(settlement.reason), entry: entry,
                    operation: .id(operation))
                : StepSettlement.drop(settlement.entry, as: operation))
        return try await run(Query(change: Change("settle", operation, rows: rows, writes)) { rows in rows.happened })
    }
}

private let auditSettle = Statement.audit(
    """
    INSERT INTO audit (operation, at, event, website_id, user_id, challenge_id, device_id, outcome)
    SELECT :operation, :now, :event, u.website_id, u.id, o.challenge_id, o.device_id, :outcome
    FROM outbox o JOIN user u ON u.id = o.user_id WHERE o.id = :entry AND o.dead_at IS NULL
    \(Audit.once)
    """)

private let die = Statement(
    """
    UPDATE outbox SET dead_at = :now, reason = :reason, due_at = NULL, holder = NULL, lease = NULL
    WHERE id = :entry AND \(Guards.audited)
    """)

extension Store {
    public func postpone(_ pause: MessageRetry, by relay: RelayID) async throws(StoreFailure) -> Bool {
        let script = Script(
            "postpone",
            writes: [
                putBack(
                    dueAt: .timestamp(pause.until), reason: .text(pause.reason),
                    ambiguousAt: .timestamp(pause.ambiguousAt), entry: .id(pause.entry), relay: .id(relay))
            ], reads: [RetriedEntries.isThere(entry: .id(pause.entry), dueAt: .timestamp(pause.until))])
        return try await run(Query(script: script) { rows in !rows[0].isEmpty })
    }
}

private let putBack = Statement(
    """
    UPDATE outbox SET holder = NULL, lease = NULL, due_at = :dueAt, reason = :reason, ambiguous_at = :ambiguousAt
    WHERE id = :entry AND \(RetriedEntries.isOurs)
    """)

extension Store {
    public func backlog(at now: Timestamp) async throws(StoreFailure) -> Backlog {
        let script = Script("backlog", reads: [oldestDue(now: .timestamp(now)), countDead()])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                Backlog(
                    oldestDue: try rows[0].first?.timestamp("due_at"),
                    dead: try rows[1].first?.integer("dead_entries") ?? 0)
            })
    }
}

private let oldestDue = Statement("SELECT due_at FROM outbox WHERE due_at <= :now ORDER BY due_at LIMIT 1")

/// Counts dead letters. The index of entries without a due time is sufficient for that.
private let countDead = Statement(
    "SELECT count(*) AS dead_entries FROM outbox WHERE due_at IS NULL AND dead_at IS NOT NULL")
