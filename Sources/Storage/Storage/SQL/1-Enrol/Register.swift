import Domain
import Relay
import World

extension Store: RegisterStore {
    public func register(
        _ user: NewUser, activation: NewActivation, secret: StoredSecret?, as operation: Operation
    ) async throws(StoreFailure) -> RegisterOutcome {
        let fields = user.registration
        let mine: [SQLValue] = [.id(user.website), .id(user.id)]
        let rows =
            [.website(user.website), .user(user.id).signed, .activation(activation.digest).signed]
            + user.factors.flatMap { Factors.rows($0) }
        let change = Change(
            "register", operation, rows: rows,
            [
                BoundStatement(
                    insertUser, .id(user.id), .id(user.token), .text(fields.username), .text(fields.email),
                    .text(fields.phone),
                    .text(fields.displayName), .text(fields.language), .timestamp(user.createdAt), .id(operation),
                    .id(user.website))
            ] + OperationSecrets.onlyOnce(user.id, as: operation) + [
                activation.insertion(operation)
            ] + user.factors.flatMap { Factors.written($0, as: operation) } + [
                BoundStatement(
                    auditUser, .id(operation), .timestamp(user.createdAt), .text("user.registered"), .id(user.id),
                    .id(operation))
            ] + OperationSecrets.stored(secret, as: operation),
            reads: [
                OperationSecrets.read(operation.id),
                BoundStatement(active, .id(user.website)),
                BoundStatement(
                    taken,
                    values: mine + [.text(fields.username)] + mine + [.text(fields.email)] + mine
                        + [.text(fields.phone)]),
            ])
        return try await run(
            Query(change: change) { rows throws(StoreFailure) in
                if let at = try rows.happenedAt {
                    return .registered(
                        activationExpiresAt: at + NewActivation.lifetime, secret: try rows[1].operationSecret)
                }
                guard !rows[2].isEmpty, let row = rows[3].first else { return .websiteGone }
                return .taken(username: try row.bool(0), email: try row.bool(1), phone: try row.bool(2))
            })
    }

    public func countUsers(of website: WebsiteID, upTo most: Int) async throws(StoreFailure) -> Int {
        let script = Script("users", reads: [BoundStatement(usersOfWebsite, .id(website), .integer(Int64(most)))])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                guard let row = rows[0].first else { throw .internal("a count without a row") }
                return Int(try row.integer(0))
            })
    }

    public func user(named username: String, of website: WebsiteID) async throws(StoreFailure) -> UserRow? {
        try await user(
            Script(
                "user", rows: [.user(named: username, of: website)],
                reads: [BoundStatement(userByName, .id(website), .text(username))]))
    }

    public func user(token: UserToken, of website: WebsiteID) async throws(StoreFailure) -> UserRow? {
        try await user(
            Script("user", rows: [.user(token)], reads: [BoundStatement(userByToken, .id(website), .id(token))]))
    }

    private func user(_ script: Script) async throws(StoreFailure) -> UserRow? {
        try await run(
            Query(script: script) { rows throws(StoreFailure) in
                guard let row = rows[0].first else { return nil }
                return UserRow(
                    id: try row.id(0), token: try row.id(1), username: try row.text(2),
                    email: try row.optionalText(3), phone: try row.optionalText(4),
                    displayName: try row.optionalText(5), language: try row.optionalText(6),
                    state: try row.word(8), isProved: try row.optionalTimestamp(9) != nil,
                    challenge: try row.optionalID(7), stoppedBy: try row.optionalWord(10),
                    codes: try row.codeLockout())
            })
    }

    public func devices(of user: UserID, at now: Timestamp) async throws(StoreFailure) -> [DeviceView] {
        let script = Script(
            "devices", rows: [.devices(of: user)],
            reads: [BoundStatement(devicesOfUser, .id(user), Phones.stale(at: now))])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                var views: [DeviceView] = []
                for row in rows[0] { views.append(try row.device(0)) }
                return views
            })
    }

    public func forget(
        _ user: UserID, website: WebsiteID, at now: Timestamp, as operation: Operation
    ) async throws(StoreFailure) -> [ChallengeID]? {
        let (now, mine) = (SQLValue.timestamp(now), [SQLValue.id(user), .id(operation)])
        let belongings = [
            forgetEntries, forgetNews, forgetSteps, forgetChallenges, forgetDevices, forgetActivations,
            forgetSentCodes, forgetFactors, forgetRecoveryCodes,
        ]
        let change = Change(
            "forget", operation,
            [
                BoundStatement(markUser, .id(operation), .id(user), .id(website)),
                BoundStatement(endOpen, values: [now, .id(operation), .id(user), now] + mine),
                BoundStatement(auditOthersEnded, values: [now] + mine),
                BoundStatement(auditForgotten, values: [.id(operation), now, .id(operation)] + mine),
            ] + belongings.map { BoundStatement($0, values: mine) } + [BoundStatement(forgetUser, values: mine)],
            reads: [BoundStatement(endedWith, .id(operation))])
        return try await run(
            Query(change: change) { rows throws(StoreFailure) in
                guard rows.happened else { return nil }
                var ended: [ChallengeID] = []
                for row in rows[1] { ended.append(try row.id(0)) }
                return ended
            })
    }
}

private let usersOfWebsite = Statement(
    "SELECT COUNT(*) FROM (SELECT 1 FROM user WHERE website_id = ? LIMIT ?) u")

private let insertUser = Statement(
    into: .user, once: true,
    """
    INSERT INTO user
    (id, token, website_id, username, email, phone, display_name, language, created_at, operation, state)
    SELECT ?, ?, w.id, ?, ?, ?, ?, ?, ?, ?, 'active' FROM website w WHERE w.id = ? AND w.state = 'active'
    """)

private let auditUser = Statement(
    Audit.columns + """
         SELECT ?, ?, ?, u.website_id, u.id, NULL, NULL, NULL, NULL FROM user u WHERE u.id = ? AND u.operation = ?
        """ + Audit.once)

private let active = Statement("SELECT 1 FROM website WHERE id = ? AND state = 'active'")

private let taken = Statement(
    """
    SELECT EXISTS (SELECT 1 FROM user WHERE website_id = ? AND id <> ? AND username = ?),
        EXISTS (SELECT 1 FROM user WHERE website_id = ? AND id <> ? AND email = ?),
        EXISTS (SELECT 1 FROM user WHERE website_id = ? AND id <> ? AND phone = ?)
    """)

private let columns = """
    SELECT id, token, username, email, phone, display_name, language, challenge_id, state, proved_at, stopped_by,
    """ + " " + CodeLockout.columns() + " FROM user"
private let userByName = Statement(columns + " WHERE website_id = ? AND username = ?")
private let userByToken = Statement(columns + " WHERE website_id = ? AND token = ?")

private let devicesOfUser = Statement(
    "SELECT " + Phones.columns + """
             FROM device WHERE user_id = ? AND
        """ + Phones.isThere + " ORDER BY created_at, id")

/// Locks the user's row, so that two changes of one user run one after the other.
private let markUser = Statement("UPDATE user SET operation = ? WHERE id = ? AND website_id = ?")

/// Cancels open challenges. If another change ends one at the same time, only one of the two takes
/// effect.
private let endOpen = Statement(
    """
    UPDATE challenge SET state = 'cancelled', reason = 'cancelled', decided_at = ?, operation = ?
    WHERE user_id = ? AND decided_at IS NULL AND expires_at > ? AND EXISTS
    (SELECT 1 FROM user u WHERE u.id = ? AND u.operation = ?)
    """)

/// Audits the end of other challenges than the newest, because a login from a known browser may
/// have been open beside it.
private let auditOthersEnded = Statement(
    Audit.ended + "c.user_id = ? AND c.operation = ? AND c.id <> "
        + "(SELECT u.challenge_id FROM user u WHERE u.id = c.user_id)" + Audit.once)

/// Audits the deletion. The newest challenge is deleted with the user, so this row also reports its
/// end.
private let auditForgotten = Statement(
    Audit.columns + """
         SELECT ?, ?, 'user.forgotten', u.website_id, u.id, c.id, NULL, NULL, NULL FROM user u
        LEFT JOIN challenge c ON c.id = u.challenge_id AND c.operation = ? WHERE u.id = ? AND u.operation = ?
        """ + Audit.once)

private let endedWith = Statement("SELECT challenge_id FROM audit WHERE operation = ? AND challenge_id IS NOT NULL")

private let forgetEntries = Statement(
    """
    DELETE /*M! o */ FROM outbox
    /*M! AS o JOIN challenge c ON c.id = o.challenge_id WHERE c.user_id = ? */
    /*S! WHERE challenge_id IN (SELECT id FROM challenge WHERE user_id = ?) */
    AND EXISTS (SELECT 1 FROM audit WHERE operation = ?)
    """)
private let forgetNews = Statement(
    "DELETE FROM outbox WHERE user_id = ? AND EXISTS (SELECT 1 FROM audit WHERE operation = ?)")
private let forgetSteps = Statement(
    """
    DELETE /*M! s */ FROM step
    /*M! AS s JOIN challenge c ON c.id = s.challenge_id WHERE c.user_id = ? */
    /*S! WHERE challenge_id IN (SELECT id FROM challenge WHERE user_id = ?) */
    AND EXISTS (SELECT 1 FROM audit WHERE operation = ?)
    """)
private let forgetChallenges = Statement(
    "DELETE FROM challenge WHERE user_id = ? AND EXISTS (SELECT 1 FROM audit WHERE operation = ?)")
private let forgetDevices = Statement(
    "DELETE FROM device WHERE user_id = ? AND EXISTS (SELECT 1 FROM audit WHERE operation = ?)")
private let forgetActivations = Statement(
    "DELETE FROM activation WHERE user_id = ? AND EXISTS (SELECT 1 FROM audit WHERE operation = ?)")
private let forgetSentCodes = Statement(
    """
    DELETE /*M! s */ FROM sent_code
    /*M! AS s JOIN factor f ON f.id = s.factor_id WHERE f.user_id = ? */
    /*S! WHERE factor_id IN (SELECT id FROM factor WHERE user_id = ?) */
    AND EXISTS (SELECT 1 FROM audit WHERE operation = ?)
    """)
private let forgetFactors = Statement(
    "DELETE FROM factor WHERE user_id = ? AND EXISTS (SELECT 1 FROM audit WHERE operation = ?)")
private let forgetRecoveryCodes = Statement(
    "DELETE FROM recovery_code WHERE user_id = ? AND EXISTS (SELECT 1 FROM audit WHERE operation = ?)")
private let forgetUser = Statement(
    "DELETE FROM user WHERE id = ? AND EXISTS (SELECT 1 FROM audit WHERE operation = ?)")
