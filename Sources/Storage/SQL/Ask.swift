import Domain
import Relay
import World

extension Store: AskStore {
    public func subject(_ subject: Subject, of website: WebsiteID) async throws(StoreFailure) -> Askable? {
        let (users, phones, open, key): (Statement, Statement, Statement, SQLValue) =
            switch subject {
            case .token(let token): (userByToken, phonesByToken, openByToken, .id(token))
            case .username(let name): (userByName, phonesByName, openByName, .text(name))
            }
        let script = Script(
            "subject", reads: [users, phones, open].map { Step($0, .id(website), key) })
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                guard let user = rows[0].first else { return nil }
                var phones: [Askable.Phone] = []
                for row in rows[1] {
                    phones.append(
                        Askable.Phone(
                            id: try row.id(0), pushToken: try row.text(1), environment: try row.word(2)))
                }
                var open: [ChallengeID] = []
                for row in rows[2] { open.append(try row.id(0)) }
                return Askable(user: try user.id(0), username: try user.text(1), phones: phones, open: open)
            })
    }

    public func ask(_ challenge: NewChallenge, as operation: Operation) async throws(StoreFailure) -> Timestamp? {
        let now = SQLValue.moment(challenge.askedAt)
        let mine: [SQLValue] = [.id(challenge.user), .id(operation)]
        let isOpen = !challenge.life.state.isEnd
        var writes = [
            Step(markUser, .id(challenge.id), .id(operation), .id(challenge.user), .id(challenge.website)),
            Step(supersede, values: [now, .id(operation), .id(challenge.user)] + mine),
            Step(dropErrands, .id(challenge.user), .id(operation)),
            Step(
                insertChallenge,
                values: [
                    .id(challenge.id), .word(challenge.life.state), .word(challenge.life.reason),
                    .text(challenge.policy), .blob(challenge.context), .blob(challenge.nonce),
                    .text(challenge.number), .blob(challenge.approves), .word(challenge.factor), now,
                    .moment(challenge.life.expiresAt),
                    isOpen ? .null : now, .id(operation),
                ] + mine),
        ]
        if let factor = challenge.factor, let step = challenge.step {
            writes.append(Step(insertStep, values: [.id(challenge.id), .word(factor), .word(step), now] + mine))
        }
        for push in challenge.pushes {
            writes.append(
                Step(
                    insertPush, .id(push.id), .id(challenge.id), .moment(push.leasedUntil), .id(push.holder),
                    .id(push.device), .id(challenge.user), .id(challenge.user), .id(operation)))
        }
        if isOpen {
            writes.append(
                Step(
                    insertExpiry,
                    values: [.id(challenge.expiry), .id(challenge.id), .moment(challenge.life.expiresAt)] + mine))
        }
        writes.append(Step(auditAsk, values: [.id(operation), now, .id(challenge.id), .word(challenge.factor)] + mine))
        let change = Change("ask", operation, writes, reads: [Step(end, .id(challenge.id))])
        return try await run(
            Query(change: change) { rows throws(StoreFailure) in
                guard rows.happened, let row = rows[1].first else { return nil }
                return try row.moment(0)
            })
    }
}

private let userColumns = "SELECT u.id, u.username FROM user u WHERE u.website_id = ? AND "
private let userByToken = Statement(userColumns + "u.token = ?")
private let userByName = Statement(userColumns + "u.username = ?")

private let phoneColumns = """
    SELECT d.id, d.push_token, d.environment FROM device d JOIN user u ON u.id = d.user_id
    WHERE d.state = 'active' AND u.website_id = ? AND
    """
private let phonesByToken = Statement(phoneColumns + " u.token = ? ORDER BY d.created_at, d.id")
private let phonesByName = Statement(phoneColumns + " u.username = ? ORDER BY d.created_at, d.id")

private let openColumns = """
    SELECT c.id FROM challenge c JOIN user u ON u.id = c.user_id
    WHERE c.decided_at IS NULL AND u.website_id = ? AND
    """
private let openByToken = Statement(openColumns + " u.token = ?")
private let openByName = Statement(openColumns + " u.username = ?")

/// Locks the user's row, so that two requests about one user come one after the other.
private let markUser = Statement(
    """
    UPDATE user SET challenge_id = ?, operation = ?
    WHERE id = ? AND website_id = ? AND EXISTS
    (SELECT 1 FROM website w WHERE w.id = user.website_id AND w.state = 'active')
    """)

private let asked = " EXISTS (SELECT 1 FROM user u WHERE u.id = ? AND u.operation = ?)"

private let supersede = Statement(
    """
    UPDATE challenge SET state = 'cancelled', reason = 'superseded', decided_at = ?, operation = ?
    WHERE user_id = ? AND decided_at IS NULL AND
    """ + asked)

/// MariaDB looks at every row of a table for `IN (SELECT …)`, and at the right ones for a join; SQLite has no join here.
private let dropErrands = Statement(
    """
    DELETE /*M! o */ FROM outbox
    /*M! AS o JOIN challenge c ON c.id = o.challenge_id WHERE */
    /*S! WHERE challenge_id IN (SELECT c.id FROM challenge c WHERE */
    c.user_id = ? AND c.operation = ? AND c.reason = 'superseded' /*S! ) */
    """)

private let insertChallenge = Statement(
    """
    INSERT INTO challenge
    (id, state, reason, policy, context, nonce, number, approves, factor, asked_at, expires_at, decided_at, operation, guesses,
    website_id, user_id)
    SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, u.website_id, u.id FROM user u WHERE u.id = ? AND u.operation = ?
    """)

private let insertStep = Statement(
    """
    INSERT INTO step (challenge_id, ordinal, factor, state, at)
    SELECT ?, 1, ?, ?, ? FROM user u WHERE u.id = ? AND u.operation = ?
    """)

private let insertPush = Statement(
    """
    INSERT INTO outbox (id, kind, challenge_id, due_at, attempts, holder, device_id)
    SELECT ?, 'push', ?, ?, 0, ?, d.id FROM device d
    WHERE d.id = ? AND d.user_id = ? AND d.state = 'active' AND
    """ + asked)

private let insertExpiry = Statement(
    """
    INSERT INTO outbox (id, kind, challenge_id, due_at, attempts)
    SELECT ?, 'expiry', ?, ?, 0 FROM user u WHERE u.id = ? AND u.operation = ?
    """)

private let end = Statement("SELECT expires_at FROM challenge WHERE id = ?")

private let auditAsk = Statement(
    Audit.columns + """
         SELECT ?, ?, 'challenge.asked', u.website_id, u.id, ?, NULL, ?, NULL
        FROM user u WHERE u.id = ? AND u.operation = ?
        """ + Audit.once)
