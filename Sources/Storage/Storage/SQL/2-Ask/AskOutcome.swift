import Domain
import Relay
import World

/// Part 6 reads the outcome: the stored challenge, or the reason why none was stored.
extension AskScript {
    var reads: [BoundStatement] {
        let (user, now) = (SQLValue.id(challenge.user), SQLValue.timestamp(challenge.askedAt))
        return [
            readStored(challenge: .id(challenge.id), user: user),
            readPushes(challenge: .id(challenge.id)),
            readSuperseded(user: user, now: now, operation: .id(operation)),
            blocker(
                user: user, known: .origin(limits.origin), since: .timestamp(limits.since),
                others: .integer(Int64(limits.logins - 1))),
        ]
    }

    static func outcome(_ rows: [Rows]) throws(StoreFailure) -> AskOutcome {
        guard rows.happened, let row = rows[1].first else {
            guard let blocker = rows[4].first else { return .gone }
            return .limited(by: try blocker.timestamp("asked_at"))
        }
        var pushes: [OutboxEntryID] = []
        for push in rows[2] { pushes.append(try push.id("id")) }
        var superseded: [ChallengeID] = []
        for ended in rows[3] { superseded.append(try ended.id("id")) }
        let life = try row.life()
        return .stored(
            StoredChallenge(
                life: life, number: try row.optionalText("number"), factor: try row.optionalWord("factor"),
                pushes: pushes, superseded: superseded))
    }
}

private let readStored = Statement(
    """
    SELECT state, decision, reason, expires_at, factor, number FROM challenge WHERE id = :challenge AND user_id = :user
    """)

private let readPushes = Statement("SELECT id FROM outbox WHERE challenge_id = :challenge AND kind = 'push'")

private let readSuperseded = Statement("SELECT c.id FROM challenge c WHERE \(AskScript.superseded)")

private let blocker = Statement("SELECT c.asked_at FROM challenge c WHERE c.user_id = :user AND \(Blocker.window)")
