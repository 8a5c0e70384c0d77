import Domain
import Relay
import World

extension Store: CascadeStore {
    public func cascade(_ challenge: ChallengeID, at now: Timestamp) async throws(StoreFailure) -> CascadeRow? {
        let id = SQLValue.id(challenge)
        let script = Script(
            "cascade", rows: [.challenge(challenge), .user(asked: challenge)],
            reads: [
                openChallenge(challenge: id, now: .timestamp(now)), stepsOf(challenge: id), phonesOf(challenge: id),
                codesOf(now: .timestamp(now), challenge: id),
                nextOf(challenge: id),
            ])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                guard let row = rows[0].first else { return nil }
                var steps: [ChallengeRow.Step] = []
                for step in rows[1] { steps.append(try ChallengeSteps.read(step)) }
                var codes: [CodeFactor] = []
                for code in rows[3] { codes.append(try CodeFactors.read(code)) }
                return CascadeRow(
                    challenge: challenge, user: try row.id("user_id"), website: try row.text("display_name"),
                    account: CascadeAccount(
                        id: try row.id("website_id"), name: try row.text("website_name"),
                        policy: try row.text("website_policy")),
                    policy: try row.text("policy"), context: try row.context("context"),
                    askedAt: try row.timestamp("asked_at"), expiresAt: try row.timestamp("expires_at"),
                    language: try row.optionalText("language"), steps: steps,
                    phones: try AskablePhones.read(rows[2]), codes: codes, origin: try row.askOrigin("known"),
                    areCodesLocked: try row.bool("are_codes_locked"), hasNext: !rows[4].isEmpty,
                    hasUserExpired: try row.bool("has_user_expired"))
            })
    }
}

private let openChallenge = Statement(
    """
    SELECT c.user_id, w.display_name, w.id AS website_id, w.name AS website_name, w.policy AS website_policy, c.policy, c.context, c.asked_at, c.expires_at, c.language,
    u.codes_locked_at IS NOT NULL AS are_codes_locked, c.known,
    coalesce(u.expires_at <= :now, 0) AS has_user_expired
    FROM challenge c JOIN user u ON u.id = c.user_id JOIN website w ON w.id = c.website_id
    WHERE c.id = :challenge AND c.decided_at IS NULL AND u.state = 'active'
    """)

private let stepsOf = Statement(
    "\(ChallengeSteps.columns) step s WHERE s.challenge_id = :challenge ORDER BY s.ordinal")

private let phonesOf = Statement(
    """
    \(AskablePhones.columns) JOIN challenge c ON c.user_id = d.user_id
    WHERE d.state = 'active' AND c.id = :challenge \(AskablePhones.order)
    """)

private let codesOf = Statement(
    """
    SELECT \(CodeFactors.columns) FROM factor f JOIN challenge c ON c.user_id = f.user_id
    WHERE \(CodeFactors.count) AND c.id = :challenge
    """)

private let nextOf = Statement(
    "SELECT 1 FROM outbox WHERE challenge_id = :challenge AND kind = 'next' AND dead_at IS NULL")

/// The columns of a step, and how they are read.
enum ChallengeSteps {
    /// The columns of the alias `s`.
    static let columns = "SELECT s.factor, s.state, s.at, s.reason FROM"

    static func read(_ row: Row, tries: Int64? = nil) throws(StoreFailure) -> ChallengeRow.Step {
        ChallengeRow.Step(
            factor: try row.word("factor"), state: try row.word("state"), at: try row.timestamp("at"),
            reason: try row.optionalText("reason"), tries: tries.map { Int($0) })
    }
}

extension Store {
    public func setPushAside(_ challenge: ChallengeID) async throws(StoreFailure) {
        let id = SQLValue.id(challenge)
        let script = Script(
            "push down", writes: [CascadeSteps.hold(challenge: id), CascadeSteps.markAside(challenge: id)])
        try await run(Query(script: script) { _ in () })
    }

    public func dropNext(_ challenge: ChallengeID, after steps: Int) async throws(StoreFailure) {
        let id = SQLValue.id(challenge)
        let script = Script(
            "nothing left",
            writes: [
                CascadeSteps.hold(challenge: id), dropNextAfter(challenge: id, steps: .integer(Int64(steps))),
            ])
        try await run(Query(script: script) { _ in () })
    }
}

private let dropNextAfter = Statement(
    """
    DELETE FROM outbox WHERE challenge_id = :challenge AND kind = 'next'
    AND (SELECT count(*) FROM step s WHERE s.challenge_id = :challenge) = :steps
    """)

/// Statements of scripts in which a step ends.
enum CascadeSteps {
    /// Locks the challenge's row, so that changes of its steps run one after the other.
    static let hold = Statement("UPDATE challenge SET state = state WHERE id = :challenge")

    /// The condition that a step is under way. A queued push whose service is down is not: it waits
    /// beside the other steps.
    ///
    /// - Parameter alias: the alias of the table with a dot.
    static func underWay(_ alias: String = "") -> String {
        """
        (\(alias)state IN ('sent', 'seen')
        OR \(alias)state = 'queued' AND coalesce(\(alias)reason, '') <> '\(ChallengeRow.Step.pushDown)')
        """
    }

    /// Records that a queued push waits for its service.
    static let markAside = Statement(pushDown)

    /// The same in a script. The statement must follow the audit row of the change.
    static func setAside(_ challenge: ChallengeID, by operation: Operation) -> BoundStatement {
        markAsideInChange(challenge: .id(challenge), operation: .id(operation))
    }

    private static let markAsideInChange = Statement("\(pushDown) AND \(Guards.audited)")

    private static let pushDown = """
        UPDATE step SET reason = '\(ChallengeRow.Step.pushDown)'
        WHERE challenge_id = :challenge AND factor = 'push' AND state = 'queued'
        """

    /// Makes the next factor due at once if no step is under way any more. The statement must
    /// follow the audit row of the change.
    static func makeDue(_ challenge: ChallengeID, at now: Timestamp, by operation: Operation) -> BoundStatement {
        dueOfChallenge(now: .timestamp(now), challenge: .id(challenge), operation: .id(operation))
    }

    private static let dueOfChallenge = Statement(
        """
        UPDATE outbox SET due_at = :now, holder = NULL, lease = NULL
        WHERE challenge_id = :challenge AND kind = 'next' AND dead_at IS NULL AND NOT \(isUnderWay)
        AND \(Guards.audited)
        """)

    /// A step of the entry's challenge is unfinished.
    private static let isUnderWay = """
        EXISTS (SELECT 1 FROM step s
        WHERE s.challenge_id = outbox.challenge_id AND \(underWay("s.")))
        """

    /// Makes the next factors due for all open challenges of a user.
    static func makeDue(of user: UserID, at now: Timestamp, by operation: Operation) -> BoundStatement {
        makeDue(of: user, at: now, noted: operation.id)
    }

    /// Makes the next factors due, after a change whose audit row has another id than the
    /// operation's.
    static func makeDue(of user: UserID, at now: Timestamp, noted: OperationID) -> BoundStatement {
        dueOfUser(now: .timestamp(now), user: .id(user), operation: .id(noted))
    }

    private static let dueOfUser = Statement(
        """
        UPDATE outbox /*M! JOIN challenge c ON c.id = outbox.challenge_id */
        SET /*M! outbox.due_at */ /*S! due_at */ = :now, /*M! outbox.holder */ /*S! holder */ = NULL,
        /*M! outbox.lease */ /*S! lease */ = NULL WHERE outbox.kind = 'next' AND dead_at IS NULL AND
        /*S! challenge_id IN (SELECT c.id FROM challenge c WHERE */ c.user_id = :user AND c.decided_at IS NULL /*S! ) */
        AND NOT \(isUnderWay) AND \(Guards.audited)
        """)
}
