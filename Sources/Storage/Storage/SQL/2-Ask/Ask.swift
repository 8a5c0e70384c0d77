import Domain
import Relay
import World

extension Store: AskStore {
    public func subject(
        _ subject: Subject, of website: WebsiteID, within limits: AskLimits
    ) async throws(StoreFailure) -> AskSubject? {
        let (users, phones, codes, blocker, key): (Statement, Statement, Statement, Statement, SQLValue) =
            switch subject {
            case .token(let token): (userByToken, phonesByToken, codesByToken, blockerByToken, .id(token))
            case .username(let name): (userByName, phonesByName, codesByName, blockerByName, .text(name))
            }
        let script = Script(
            "subject", rows: [subject.row(of: website)],
            reads: [users, phones, codes].map { BoundStatement($0, .id(website), key) } + [
                BoundStatement(
                    blocker, .id(website), key, .bool(limits.isKnown), .timestamp(limits.since),
                    .integer(Int64(limits.logins - 1)))
            ])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                guard let user = rows[0].first else { return nil }
                var codes: [Factor] = []
                for row in rows[2] { codes.append(try row.word(0)) }
                return AskSubject(
                    user: try user.id(0), username: try user.text(1), phones: try AskablePhones.read(rows[1]),
                    codes: codes, areCodesLocked: try user.bool(2), limitedBy: try rows[3].first?.timestamp(0))
            })
    }

    public func ask(
        _ challenge: NewChallenge, within limits: AskLimits, as operation: Operation
    ) async throws(StoreFailure) -> AskOutcome {
        let now = SQLValue.timestamp(challenge.askedAt)
        let since = SQLValue.timestamp(limits.since)
        let isKnown = SQLValue.bool(limits.isKnown)
        let id = SQLValue.id(challenge.id)
        let user: [SQLValue] = [.id(challenge.user), .id(operation)]
        let stored: [SQLValue] = [id, .id(operation)]
        let superseded: [SQLValue] = [.id(challenge.user), now, .id(operation)]
        var writes = [
            BoundStatement(lockUser, .id(challenge.user), .id(challenge.website)),
            BoundStatement(
                markUser, id, .id(operation), .id(challenge.user), .id(challenge.website), isKnown, since,
                .integer(Int64(limits.logins))),
            BoundStatement(supersede, values: [now, .id(operation), .id(challenge.user), now, isKnown] + user),
            Steps.skip(of: challenge.user, at: challenge.askedAt, by: operation),
            BoundStatement(dropEntries, values: superseded),
            LoginDecidedRows.insertLoginDecided(of: challenge.user, at: challenge.askedAt, as: operation),
            BoundStatement(auditSuperseded, values: [now] + superseded),
        ]
        for push in challenge.pushes {
            writes.append(
                BoundStatement(
                    insertPush,
                    values: [.id(push.id), id, .timestamp(push.leasedUntil), .id(push.holder), .id(push.device)] + user
                        + [isKnown, since, .integer(Int64(limits.pushes)), isKnown, now]))
        }
        let isOpen = !challenge.life.state.isEnd
        writes += [
            BoundStatement(
                insertChallenge,
                values: [
                    id, .word(challenge.life.state), .word(challenge.life.reason), .text(challenge.policy),
                    .blob(challenge.context), .blob(challenge.nonce), .text(challenge.number),
                    .blob(challenge.approves), .text(challenge.language), isKnown, id, .word(challenge.otherwise), now,
                    .timestamp(challenge.life.expiresAt), isOpen ? .null : now, now, .id(operation),
                ] + user),
            BoundStatement(insertStep, values: stored),
            BoundStatement(insertExpiry, values: [.id(challenge.expiry)] + stored),
        ]
        if let next = challenge.next {
            writes.append(
                BoundStatement(insertNext, values: [.id(next.id), .timestamp(next.due), .id(next.holder)] + stored))
        }
        writes += [
            BoundStatement(auditAsk, values: [.id(operation), now] + stored),
            // Notifies the website of a challenge that has ended at once, because the answer of
            // `/login` does not report the end.
            LoginDecidedRows.insertLoginDecided(challenge.id, at: challenge.askedAt, as: operation),
        ]
        let change = Change(
            "ask", operation,
            rows: [
                .user(challenge.user).signed, .website(challenge.website), .challenge(challenge.id).signed,
                .entries(for: challenge.id).signed,
                LoginDecidedRows.rows(of: challenge.user, at: challenge.askedAt, as: operation),
            ], writes,
            reads: [
                BoundStatement(readStored, id, .id(challenge.user)), BoundStatement(readPushes, id),
                BoundStatement(readSuperseded, values: superseded),
                BoundStatement(blocker, .id(challenge.user), isKnown, since, .integer(Int64(limits.logins - 1))),
            ])
        return try await run(
            Query(change: change) { rows throws(StoreFailure) in
                guard rows.happened, let row = rows[1].first else {
                    return try rows[4].first.map { row throws(StoreFailure) in .limited(by: try row.timestamp(0)) }
                        ?? .gone
                }
                var pushes: [OutboxEntryID] = []
                for push in rows[2] { pushes.append(try push.id(0)) }
                var superseded: [ChallengeID] = []
                for ended in rows[3] { superseded.append(try ended.id(0)) }
                let life = ChallengeLife(
                    state: try row.word(0), decision: try row.optionalWord(1), reason: try row.optionalWord(2),
                    expiresAt: try row.timestamp(3))
                return .stored(
                    StoredChallenge(
                        life: life, number: try row.optionalText(5), factor: try row.optionalWord(4), pushes: pushes,
                        superseded: superseded))
            })
    }
}

extension Subject {
    /// The user's row alone. A phone's row is checked when the phone answers, and a factor's row
    /// when a code is made with it. One row that is not genuine therefore does not prevent a login
    /// with another factor.
    fileprivate func row(of website: WebsiteID) -> SignedRows {
        switch self {
        case .token(let token): .user(token)
        case .username(let name): .user(named: name, of: website)
        }
    }
}

private let userColumns =
    "SELECT u.id, u.username, u.codes_locked_at IS NOT NULL FROM user u WHERE u.website_id = ? AND "
private let userByToken = Statement(userColumns + "u.token = ?")
private let userByName = Statement(userColumns + "u.username = ?")

/// The phones with which a user can be asked.
enum AskablePhones {
    /// The columns of the alias `d`.
    static let columns = "SELECT d.id, d.push_token, d.environment, d.platform, d.public_key IS NOT NULL FROM device d "
    static let order = " ORDER BY d.created_at, d.id"

    static func read(_ rows: Rows) throws(StoreFailure) -> [AskSubject.Phone] {
        var phones: [AskSubject.Phone] = []
        for row in rows {
            phones.append(
                AskSubject.Phone(
                    id: try row.id(0), platform: try row.word(3), pushToken: try row.text(1),
                    environment: try row.word(2), hasKey: try row.bool(4)))
        }
        return phones
    }
}

private let phoneColumns =
    AskablePhones.columns + "JOIN user u ON u.id = d.user_id WHERE d.state = 'active' AND u.website_id = ? AND"
private let phonesByToken = Statement(phoneColumns + " u.token = ?" + AskablePhones.order)
private let phonesByName = Statement(phoneColumns + " u.username = ?" + AskablePhones.order)

private let codeColumns = """
    SELECT f.kind FROM factor f JOIN user u ON u.id = f.user_id WHERE f.state = 'active' AND u.website_id = ? AND
    """
private let codesByToken = Statement(codeColumns + " u.token = ?")
private let codesByName = Statement(codeColumns + " u.username = ?")

/// Finds the oldest of the newest challenges that fill the limit, among those from known browsers
/// or among the others. There is none while the limit is not reached.
private let window = "c.known = ? AND c.asked_at > ? ORDER BY c.asked_at DESC LIMIT 1 OFFSET ?"
private let blockerColumns = """
    SELECT c.asked_at FROM user u JOIN challenge c ON c.user_id = u.id WHERE u.website_id = ? AND
    """
private let blockerByToken = Statement(blockerColumns + " u.token = ? AND " + window)
private let blockerByName = Statement(blockerColumns + " u.username = ? AND " + window)
private let blocker = Statement("SELECT c.asked_at FROM challenge c WHERE c.user_id = ? AND " + window)

/// Locks the user's row, so that two requests for one user run one after the other. This is a
/// separate statement: a statement that waits for the lock itself may count before it waits.
private let lockUser = Statement("UPDATE user SET operation = operation WHERE id = ? AND website_id = ?")

private let markUser = Statement(
    """
    UPDATE user SET challenge_id = ?, operation = ?
    WHERE id = ? AND website_id = ? AND EXISTS
    (SELECT 1 FROM website w WHERE w.id = user.website_id AND w.state = 'active')
    AND (SELECT count(*) FROM challenge c WHERE c.user_id = user.id AND c.known = ? AND c.asked_at > ?) < ?
    """)

/// Supersedes open challenges. A login from an unknown browser does not end one from a known
/// browser. It stays open, but the phone shows it only after the other one has ended. Expired
/// challenges keep the result `expired`, which was already reported.
private let supersede = Statement(
    """
    UPDATE challenge SET state = 'cancelled', reason = 'superseded', decided_at = ?, operation = ?
    WHERE user_id = ? AND decided_at IS NULL AND expires_at > ? AND known <= ? AND EXISTS
    (SELECT 1 FROM user u WHERE u.id = ? AND u.operation = ?)
    """)

private let superseded = "c.user_id = ? AND c.decided_at = ? AND c.operation = ? AND c.reason = 'superseded'"

/// MariaDB scans a whole table for `IN (SELECT …)`, but uses an index for a join. SQLite has no
/// join here.
private let dropEntries = Statement(
    """
    DELETE /*M! o */ FROM outbox
    /*M! AS o JOIN challenge c ON c.id = o.challenge_id WHERE */
    /*S! WHERE challenge_id IN (SELECT c.id FROM challenge c WHERE */
    """ + " " + superseded + " /*S! ) */ AND" + OutboxRows.exceptWebhooks)

/// Inserts a push within the limit. Pushes are counted by the steps that began with one, because
/// the factor of a decided challenge is the one that decided it.
private let insertPush = Statement(
    into: .outbox,
    """
    INSERT INTO outbox (id, kind, challenge_id, due_at, attempts, holder, device_id)
    SELECT ?, 'push', ?, ?, 0, ?, d.id FROM device d JOIN user u ON u.id = d.user_id
    WHERE d.id = ? AND d.state = 'active' AND u.id = ? AND u.operation = ? AND u.state = 'active' AND
    (SELECT count(*) FROM challenge c JOIN step s ON s.challenge_id = c.id
    WHERE c.user_id = u.id AND c.known = ? AND c.asked_at > ? AND s.factor = 'push'
    AND coalesce(s.reason, '') <> 'late') < ?
    AND NOT EXISTS (SELECT 1 FROM challenge k
    WHERE k.user_id = u.id AND k.known > ? AND k.decided_at IS NULL AND k.expires_at > ?)
    """)

/// Inserts the challenge. For a locked or frozen user it has already ended, with the user's state
/// as the reason.
private let insertChallenge = Statement(
    into: .challenge,
    """
    INSERT INTO challenge
    (id, state, reason, policy, context, nonce, number, approves, language, known, factor, asked_at, expires_at, decided_at,
    operation, website_id, user_id)
    SELECT ?, CASE u.state WHEN 'active' THEN ? ELSE 'failed' END, CASE u.state WHEN 'active' THEN ? ELSE u.state END,
    ?, ?, ?, ?, ?, ?, ?,
    CASE WHEN EXISTS (SELECT 1 FROM outbox o WHERE o.challenge_id = ? AND o.kind = 'push') THEN 'push'
    WHEN u.state = 'active' THEN ? END,
    ?, ?, CASE u.state WHEN 'active' THEN ? ELSE ? END, ?, u.website_id, u.id
    FROM user u WHERE u.id = ? AND u.operation = ?
    """)

private let ofStored = " FROM challenge c WHERE c.id = ? AND c.operation = ?"

private let insertStep = Statement(
    """
    INSERT INTO step (challenge_id, ordinal, factor, state, at)
    SELECT c.id, 1, c.factor, CASE WHEN c.factor IN ('push', 'pull') THEN 'queued' ELSE 'sent' END, c.asked_at
    """ + ofStored + " AND c.factor IS NOT NULL")

private let insertExpiry = Statement(
    into: .outbox,
    """
    INSERT INTO outbox (id, kind, challenge_id, due_at, attempts)
    SELECT ?, 'expiry', c.id, c.expires_at, 0
    """ + ofStored + " AND c.decided_at IS NULL")

private let insertNext = Statement(
    into: .outbox,
    """
    INSERT INTO outbox (id, kind, challenge_id, due_at, attempts, holder)
    SELECT ?, 'next', c.id, ?, 0, ?
    """ + ofStored + " AND c.decided_at IS NULL")

private let auditAsk = Statement(
    Audit.columns + """
         SELECT ?, ?, 'challenge.asked', c.website_id, c.user_id, c.id, NULL, coalesce(c.reason, c.factor), NULL
        """ + ofStored + Audit.once)

private let auditSuperseded = Statement(Audit.ended + superseded + Audit.once)

private let readStored = Statement(
    "SELECT state, decision, reason, expires_at, factor, number FROM challenge WHERE id = ? AND user_id = ?")
private let readPushes = Statement("SELECT id FROM outbox WHERE challenge_id = ? AND kind = 'push'")
private let readSuperseded = Statement("SELECT c.id FROM challenge c WHERE " + superseded)
