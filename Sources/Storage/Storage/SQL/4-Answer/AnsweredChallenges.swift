import Domain
import Relay
import World

extension Store: AnswerStore {
    public func challenge(_ id: ChallengeID, of user: UserID) async throws(StoreFailure) -> ChallengeRow? {
        let (challenge, user) = (SQLValue.id(id), SQLValue.id(user))
        return try await self.challenge(
            challengeOfUser(challenge: challenge, user: user), stepsOfUser(challenge: challenge, user: user))
    }

    public func challenge(_ id: ChallengeID, of website: WebsiteID) async throws(StoreFailure) -> ChallengeRow? {
        let (challenge, website) = (SQLValue.id(id), SQLValue.id(website))
        return try await self.challenge(
            challengeOfWebsite(challenge: challenge, website: website),
            stepsOfWebsite(challenge: challenge, website: website))
    }

    private func challenge(
        _ challenge: BoundStatement, _ steps: BoundStatement
    ) async throws(StoreFailure) -> ChallengeRow? {
        try await run(
            Query(script: Script("challenge", reads: [challenge, steps])) { rows throws(StoreFailure) in
                guard let row = rows[0].first else { return nil }
                var steps: [ChallengeRow.Step] = []
                for step in rows[1] {
                    steps.append(try ChallengeSteps.read(step, tries: try step.optionalInteger("tries")))
                }
                return try Challenges.read(row, steps)
            })
    }
}

private let challengeOfUser = Statement(
    checking: challengeTables, [Challenges.others], from: "\(challengeByID) {c.id = :challenge AND c.user_id = :user}")
private let challengeOfWebsite = Statement(
    checking: challengeTables, [Challenges.others],
    from: "\(challengeByID) {c.id = :challenge AND c.website_id = :website}")

private let challengeTables = [
    CheckedTable(.challenge, as: "c", prefix: "challenge_"), CheckedTable(.user, as: "u", prefix: "asked_"),
]

private let challengeByID = """
    \(SignedTable.challenge.checked(as: "c")) JOIN \(SignedTable.user.checked(as: "u")) ON u.id = c.user_id WHERE
    """

private let stepsOfUser = Statement("\(stepColumns) {c.id = :challenge AND c.user_id = :user} ORDER BY s.ordinal")
private let stepsOfWebsite = Statement(
    "\(stepColumns) {c.id = :challenge AND c.website_id = :website} ORDER BY s.ordinal")

/// Reads steps through their challenge, so that another owner's challenge reads as not found. A
/// queued push has the attempts that it was leased for, beside the first one.
private let stepColumns = """
    SELECT s.factor, s.state, s.at, s.reason, CASE WHEN s.factor = 'push' AND s.state = 'queued' THEN
    (SELECT max(o.attempts) + 1 FROM outbox o WHERE o.challenge_id = s.challenge_id AND o.kind = 'push') END AS tries
    FROM challenge c JOIN step s ON s.challenge_id = c.id WHERE
    """

extension Store {
    public func challenge(
        of user: UserID, meantBy operation: OperationID, at begun: Timestamp
    ) async throws(StoreFailure) -> ChallengeID? {
        let script = Script(
            "meant",
            reads: [
                closedBy(operation: .id(operation), user: .id(user)),
                newestBefore(user: .id(user), begun: .timestamp(begun)),
            ])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                guard let row = rows[0].first ?? rows[1].first else { return nil }
                return try row.id("challenge_id")
            })
    }
}

private let closedBy = Statement("SELECT challenge_id FROM audit WHERE operation = :operation AND user_id = :user")

private let newestBefore = Statement(
    """
    SELECT id AS challenge_id FROM challenge WHERE user_id = :user AND asked_at <= :begun
    ORDER BY asked_at DESC, id LIMIT 1
    """)

extension Store {
    public func eligibility(
        of device: DeviceID, at now: Timestamp
    ) async throws(StoreFailure) -> AnswerEligibility? {
        try await run(
            Query(script: Script("standing", reads: [eligibilityOfDevice(now: .timestamp(now), device: .id(device))])) {
                rows throws(StoreFailure) in
                guard let row = rows[0].first else { return nil }
                return AnswerEligibility(
                    device: try row.word("device_state"), user: try row.word("user_state"),
                    failures: Int(try row.integer("failures")), failedAt: try row.optionalTimestamp("failed_at"))
            })
    }
}

private let eligibilityOfDevice = Statement(
    """
    SELECT d.state AS device_state, \(Guards.userState) AS user_state, d.failures, d.failed_at
    FROM device d JOIN user u ON u.id = d.user_id WHERE d.id = :device
    """)

extension Store {
    public func recordRefusal(_ refused: RefusedDecision, as operation: Operation) async throws(StoreFailure) {
        let change = Change(
            "refused", operation,
            [
                auditRefused(
                    operation: .id(operation), now: .timestamp(refused.at), website: .id(refused.website),
                    user: .id(refused.user), challenge: .id(refused.challenge), device: .id(refused.device),
                    fault: .word(refused.fault))
            ])
        try await run(Query(change: change) { _ in () })
    }
}

private let auditRefused = Statement.audit(
    """
    INSERT INTO audit (operation, at, event, website_id, user_id, challenge_id, device_id, outcome)
    SELECT :operation, :now, 'decision.refused', :website, :user, :challenge, :device, :fault
    /*M! FROM DUAL */ WHERE 1 = 1
    \(Audit.once)
    """)
