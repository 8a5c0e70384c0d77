import Domain
import Relay
import World

extension Store: RecoveryStore {
    public func start(_ new: NewRecovery, as operation: Operation) async throws(StoreFailure) -> RecoveryStart {
        try await run(Recoveries.start(new, as: operation))
    }

    public func recovery(
        _ token: RecoveryToken, of website: WebsiteID
    ) async throws(StoreFailure) -> RecoveryRow? {
        let script = Script(
            "recovery", rows: [.recovery(token), .user(recovering: token)],
            reads: [Recoveries.find(token, of: website)])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in try rows[0].first.map(Recoveries.read) })
    }

    public func recoveries(of user: UserID, at now: Timestamp) async throws(StoreFailure) -> [RecoveryRow] {
        try await run(Recoveries.open(of: user, at: now))
    }

    public func open(
        _ opening: RecoveryOpening, as operation: Operation
    ) async throws(StoreFailure) -> OpenedRecovery? {
        try await run(Recoveries.opened(opening, as: operation))
    }

    public func ask(_ asking: RecoveryAsking, as operation: Operation) async throws(StoreFailure) -> Bool {
        try await run(Recoveries.asked(asking, as: operation))
    }

    public func timesAsked(about row: RecoveryRow) async throws(StoreFailure) -> Int {
        let read = countAsked(user: .id(row.user), digest: .blob(row.endOfWait))
        return try await run(
            Query(script: Script("recovery asked", reads: [read])) { rows throws(StoreFailure) in
                Int(try rows[0].first?.integer("asked") ?? 0)
            })
    }

    public func prove(_ proving: RecoveryProving, as operation: Operation) async throws(StoreFailure) -> Bool {
        try await run(Recoveries.proved(proving, as: operation))
    }

    public func cancel(_ cancelling: RecoveryCancelling, as operation: Operation) async throws(StoreFailure) -> Bool {
        try await run(Recoveries.cancel(cancelling, as: operation))
    }

    public func recovery(announcedBy entry: OutboxEntryID) async throws(StoreFailure) -> AnnouncedRecovery? {
        let script = Script(
            "announced", rows: [.entry(entry), .recovery(of: entry), .user(of: entry), .website(of: entry)],
            reads: [announced(entry: .id(entry))])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                guard let row = rows[0].first else { return nil }
                return AnnouncedRecovery(recovery: try Recoveries.read(row), website: try WebsiteColumns.read(row))
            })
    }

    public func dropAnnouncement(_ entry: OutboxEntryID) async throws(StoreFailure) {
        // The script has no operation, because a repetition has the same result.
        try await run(Query(script: Script("announced", writes: [dropEntry(entry: .id(entry))])) { _ in () })
    }
}

private let announced = Statement(
    """
    SELECT \(Recoveries.columns), \(WebsiteColumns.list)
    FROM outbox o JOIN recovery r ON r.challenge_id = o.challenge_id
    JOIN user u ON u.id = r.user_id JOIN website w ON w.id = u.website_id
    WHERE o.id = :entry AND r.state = 'proved' AND u.state = 'active'
    """)

private let countAsked = Statement(
    "SELECT count(*) AS asked FROM challenge WHERE user_id = :user AND approves = :digest")

private let dropEntry = Statement("DELETE FROM outbox WHERE id = :entry AND kind = 'recovery'")

/// The queries about recoveries, for the verbs and the operator's tool.
public enum Recoveries {
    /// The columns of the recovery `r` and its user `u`.
    static let columns = """
        r.id AS recovery_id, r.user_id AS recovery_user, u.token AS recovery_token, u.username AS recovery_username,
        r.factor AS recovery_factor, r.state AS recovery_state, r.ready_at AS recovery_ready_at,
        r.expires_at AS recovery_expires_at, r.proof AS recovery_proof, r.started_by AS recovery_started_by,
        r.challenge_id AS recovery_challenge, r.cancel AS recovery_cancel, r.created_at AS recovery_created_at,
        r.operation AS recovery_operation, r.announced_at AS recovery_announced_at, r.address AS recovery_address
        """

    static func read(_ row: Row) throws(StoreFailure) -> RecoveryRow {
        RecoveryRow(
            id: try row.id("recovery_id"), user: try row.id("recovery_user"), token: try row.id("recovery_token"),
            username: try row.text("recovery_username"), factor: try row.word("recovery_factor"),
            life: RecoveryLife(
                state: try row.word("recovery_state"), readyAt: try row.optionalTimestamp("recovery_ready_at"),
                expiresAt: try row.timestamp("recovery_expires_at"),
                announcedAt: try row.optionalTimestamp("recovery_announced_at")),
            proof: try row.optionalWord("recovery_proof"), startedBy: try row.word("recovery_started_by"),
            challenge: try row.optionalID("recovery_challenge"), cancel: try row.optionalBlob("recovery_cancel"),
            createdAt: try row.timestamp("recovery_created_at"), operation: try row.id("recovery_operation"),
            address: try row.shownAddress("recovery_address"))
    }

    private static let ofUser = "SELECT \(columns) FROM recovery r JOIN user u ON u.id = r.user_id WHERE"

    static func find(_ token: RecoveryToken, of website: WebsiteID) -> BoundStatement {
        switch token {
        case .link(let digest): byLink(digest: .blob(digest), website: .id(website))
        case .handle(let digest): byHandle(digest: .blob(digest), website: .id(website))
        case .cancel(let digest): byCancel(digest: .blob(digest), website: .id(website))
        }
    }

    private static let byLink = Statement("\(ofUser) r.link = :digest AND u.website_id = :website")
    private static let byHandle = Statement("\(ofUser) r.handle = :digest AND u.website_id = :website")
    private static let byCancel = Statement("\(ofUser) r.cancel = :digest AND u.website_id = :website")

    /// Reads the recoveries of a user that have not ended, the newest first.
    public static func open(of user: UserID, at now: Timestamp) -> Query<[RecoveryRow]> {
        let script = Script(
            "recoveries", rows: [.recoveries(of: user)], reads: [openOfUser(user: .id(user), now: .timestamp(now))])
        return Query(script: script) { rows throws(StoreFailure) in
            var recoveries: [RecoveryRow] = []
            for row in rows[0] { recoveries.append(try read(row)) }
            return recoveries
        }
    }

    private static let openOfUser = Statement(
        """
        \(ofUser) r.user_id = :user AND r.state IN ('sent', 'opened', 'proved') AND r.expires_at > :now
        ORDER BY r.created_at DESC, r.id
        """)
}

// MARK: The link

extension Recoveries {
    /// Stores a recovery and its mail, if the user is active, has the factor and a confirmed mail
    /// address, and did not get too many links. Earlier links stay valid: otherwise a stranger who
    /// knows the user name could make the link void that the user is about to open.
    public static func start(_ new: NewRecovery, as operation: Operation) -> Query<RecoveryStart> {
        let (user, own, id) = (SQLValue.id(new.user), SQLValue.id(operation), SQLValue.id(new.id))
        let (since, linkSince) = (new.at - NewRecovery.window, new.at - RecoveryLife.linkLife)
        let writes =
            [
                Locks.hold(user: user),
                markRecoverable(
                    operation: own, user: user, factor: .word(new.factor), author: .word(new.startedBy),
                    since: .timestamp(since), most: .integer(Int64(NewRecovery.most)),
                    linkSince: .timestamp(linkSince), now: .timestamp(new.at)),
            ] + OperationSecrets.onlyOnce(new.user, as: operation) + [
                insertRecovery(
                    recovery: id, factor: .word(new.factor), link: .blob(new.link), author: .word(new.startedBy),
                    now: .timestamp(new.at), expiresAt: .timestamp(new.life.expiresAt), operation: own, user: user)
            ] + mail(new.mail, about: new.id, of: new.user, besides: nil, at: new.at, as: operation) + [
                auditStarted(
                    operation: own, now: .timestamp(new.at), note: .word(new.startedBy), recovery: id)
            ]
        let change = Change(
            "recover", operation,
            rows: [
                .user(new.user).signed, .activeFactors(of: new.user), .recovery(new.id).signed,
                .entry(new.mail.entry).signed,
            ], writes,
            reads: [
                countLinks(user: user, author: .word(new.startedBy), since: .timestamp(since)),
                addressOf(recovery: id),
            ])
        return Query(change: change) { rows throws(StoreFailure) in
            if rows.happened, let row = rows[2].first { return .started(address: try row.address("address")) }
            guard let row = rows[1].first, let newest = try row.optionalTimestamp("newest") else { return .impossible }
            return try row.integer("links") >= NewRecovery.most && newest > linkSince ? .limited : .impossible
        }
    }

    private static let markRecoverable = Statement(
        """
        UPDATE user SET operation = :operation WHERE id = :user AND \(Guards.userMayLogIn)
        AND EXISTS (SELECT 1 FROM factor m WHERE m.user_id = user.id AND m.kind = 'mail' AND m.state = 'active')
        AND (EXISTS (SELECT 1 FROM factor f WHERE f.user_id = user.id AND f.kind = :factor AND f.state = 'active')
        OR :factor = 'push' AND EXISTS (SELECT 1 FROM device d WHERE d.user_id = user.id
        AND d.state IN ('active', 'suspended') AND d.public_key IS NOT NULL))
        AND ((SELECT count(*) FROM recovery r WHERE r.user_id = user.id AND r.started_by = :author
        AND r.created_at > :since) < :most
        OR NOT EXISTS (SELECT 1 FROM recovery r WHERE r.user_id = user.id AND r.started_by = :author
        AND r.created_at > :linkSince))
        """)

    private static let insertRecovery = Statement(
        into: .recovery, once: true,
        """
        INSERT INTO recovery
        (id, user_id, factor, state, link, address, started_by, created_at, expires_at, operation)
        SELECT :recovery, u.id, :factor, 'sent', :link, m.address, :author, :now, :expiresAt, :operation
        FROM user u JOIN factor m ON m.user_id = u.id AND m.kind = 'mail' AND m.state = 'active'
        WHERE u.id = :user AND u.operation = :operation
        """)

    private static let auditStarted = Statement.audit(
        """
        INSERT INTO audit (operation, at, event, website_id, user_id, outcome)
        SELECT :operation, :now, 'recovery.started', u.website_id, u.id, r.factor
        FROM recovery r JOIN user u ON u.id = r.user_id WHERE r.id = :recovery AND r.operation = :operation
        \(Audit.once)
        """)

    private static let countLinks = Statement(
        """
        SELECT count(*) AS links, max(created_at) AS newest FROM recovery
        WHERE user_id = :user AND started_by = :author AND created_at > :since
        """)

    private static let addressOf = Statement("SELECT address FROM recovery WHERE id = :recovery")

    /// Writes a mail and its sealed secret, as part of a change that has marked the user's row.
    ///
    /// - Parameter address: the address of the link, if the mail is for the one that the user had
    ///   before a change, and only if that is another one. Otherwise nil.
    static func mail(
        _ mail: RecoveryMail, about recovery: RecoveryID, of user: UserID, besides address: String?,
        at now: Timestamp, as operation: Operation
    ) -> [BoundStatement] {
        [
            insertMail.bound(
                [
                    "entry": .id(mail.entry), "event": .text(mail.event), "isToFormer": .bool(address != nil),
                    "language": .text(mail.language), "now": .timestamp(now), "expiresAt": .timestamp(mail.expiresAt),
                    "dueAt": .timestamp(mail.dueAt), "relay": .id(mail.holder), "user": .id(user),
                    "operation": .id(operation), "recovery": .id(recovery),
                    "changedSince": .timestamp(now - RecoveryLife.addressAge),
                ], lists: ["address": .forms(ofAddress: address)]),
            insertSecret(
                row: .id(mail.secret.operation), sealed: .blob(mail.secret.sealed.bytes),
                key: .text(mail.secret.sealed.key), expiresAt: .timestamp(mail.secret.expiresAt),
                entry: .id(mail.entry), user: .id(user), operation: .id(operation)),
        ]
    }

    /// The address is that of the link, or the one that the user had before a change of the last
    /// days.
    private static let insertMail = Statement(
        into: .outbox, once: true,
        """
        INSERT INTO outbox
        (id, kind, event, user_id, recovery_id, address, language, created_at, expires_at, due_at, attempts, holder)
        SELECT :entry, 'mail', :event, u.id, r.id, CASE :isToFormer WHEN 1 THEN u.former_email ELSE r.address END,
        coalesce(:language, u.language), :now, :expiresAt, :dueAt, 0, :relay
        FROM user u JOIN recovery r ON r.user_id = u.id
        WHERE u.id = :user AND u.operation = :operation AND r.id = :recovery AND r.operation = :operation
        AND (:isToFormer = 0 OR \(PersonalForms.differ("u.former_email", "address")) AND u.email_changed_at > :changedSince)
        """)

    private static let insertSecret = Statement(
        """
        INSERT INTO operation_secret (operation, sealed, sealed_by, expires_at)
        SELECT :row, :sealed, :key, :expiresAt FROM outbox o JOIN user u ON u.id = o.user_id
        WHERE o.id = :entry AND u.id = :user AND u.operation = :operation
        /*M! ON DUPLICATE KEY UPDATE operation = operation_secret.operation */ /*S! ON CONFLICT DO NOTHING */
        """)
}

// MARK: The hand-in

extension Recoveries {
    static func opened(_ opening: RecoveryOpening, as operation: Operation) -> Query<OpenedRecovery?> {
        let row = opening.recovery
        let (user, own, id) = (SQLValue.id(row.user), SQLValue.id(operation), SQLValue.id(row.id))
        var writes = [
            Locks.hold(user: user),
            markOpened.bound(
                [
                    "operation": own, "user": user, "recovery": id, "before": .id(row.operation),
                    "now": .timestamp(opening.at),
                ], lists: ["address": .forms(ofAddress: row.address)]),
        ]
        writes += OperationSecrets.onlyOnce(row.user, as: operation)
        writes += [
            open(
                handle: .blob(opening.handle), expiresAt: .timestamp(opening.life.expiresAt), operation: own,
                recovery: id, user: user),
            auditRecovery(
                operation: own, now: .timestamp(opening.at), event: .text("recovery.opened"), outcome: .null,
                note: .null, recovery: id, own: own),
        ]
        writes += OperationSecrets.stored(opening.secret, as: operation)
        let change = Change(
            "open recovery", operation,
            rows: [.user(row.user).signed, .activeFactors(of: row.user), .recovery(row.id).signed], writes,
            reads: [OperationSecrets.read(operation.id)])
        return Query(change: change) { rows throws(StoreFailure) in
            rows.happened ? OpenedRecovery(secret: try rows[1].operationSecret) : nil
        }
    }

    /// The link is void once the user has another address. A recovery keeps its address, so it is
    /// the one that the caller has read.
    private static let markOpened = Statement(
        """
        UPDATE user SET operation = :operation WHERE id = :user AND \(Guards.userMayLogIn) AND EXISTS
        (SELECT 1 FROM recovery r JOIN factor m ON m.user_id = r.user_id AND \(PersonalForms.equal("m.address", "address"))
        WHERE r.id = :recovery AND r.user_id = user.id AND r.operation = :before AND r.state = 'sent'
        AND r.expires_at > :now AND m.kind = 'mail' AND m.state = 'active')
        """)

    private static let open = Statement(
        """
        UPDATE recovery SET state = 'opened', handle = :handle, expires_at = :expiresAt, operation = :operation
        WHERE id = :recovery AND user_id = :user AND \(Guards.userMarked)
        """)

    /// Audits a change of a recovery whose row has the mark `own`.
    static let auditRecovery = Statement.audit(
        """
        INSERT INTO audit (operation, at, event, website_id, user_id, outcome)
        SELECT :operation, :now, :event, u.website_id, u.id, coalesce(:outcome, r.factor)
        FROM recovery r JOIN user u ON u.id = r.user_id WHERE r.id = :recovery AND r.operation = :own
        \(Audit.once)
        """)
}
