import Domain
import Relay
import World

/// Statements that end steps of challenges. A step ends with its challenge at the latest. The
/// states `refused`, `undeliverable`, `expired`, `answered` and `skipped` are final.
enum Steps {
    /// Skips the unfinished steps of the user's challenges that this change ended without an
    /// answer.
    static func skip(of user: UserID, at now: Timestamp, by operation: Operation) -> BoundStatement {
        BoundStatement(skipped, .timestamp(now), .id(user), .id(operation))
    }

    /// Makes unfinished steps of a factor undeliverable, after this change removed the factor or
    /// replaced its address.
    static func giveUp(_ factor: Factor, of user: UserID, at now: Timestamp, by operation: Operation) -> BoundStatement
    {
        BoundStatement(factorGone, .timestamp(now), .word(factor), .id(user), .id(operation))
    }

    /// Makes queued push steps of a user undeliverable, after this change deleted pushes to a
    /// phone. Steps with another push in the outbox stay.
    static func giveUpPushes(to user: UserID, at now: Timestamp, by operation: Operation) -> BoundStatement {
        BoundStatement(givenUp, .timestamp(now), .id(user), .id(operation))
    }
}

private let skipped = Statement(
    """
    UPDATE step /*M! JOIN challenge c ON c.id = step.challenge_id */
    SET /*M! step.state */ /*S! state */ = 'skipped', at = ? WHERE step.state IN ('queued', 'sent', 'seen') AND
    /*S! challenge_id IN (SELECT c.id FROM challenge c WHERE */
    c.user_id = ? AND c.operation = ? AND c.decided_at IS NOT NULL /*S! ) */
    """)

private let factorGone = Statement(
    """
    UPDATE step /*M! JOIN challenge c ON c.id = step.challenge_id */
    SET /*M! step.state */ /*S! state */ = 'undeliverable', at = ?,
    /*M! step.reason */ /*S! reason */ = 'the factor was dropped or replaced'
    WHERE step.factor = ? AND step.state IN ('queued', 'sent') AND
    /*S! challenge_id IN (SELECT c.id FROM challenge c WHERE */ c.user_id = ? AND c.decided_at IS NULL /*S! ) */
    AND EXISTS (SELECT 1 FROM audit WHERE operation = ?)
    """)

private let givenUp = Statement(
    """
    UPDATE step /*M! JOIN challenge c ON c.id = step.challenge_id */
    SET /*M! step.state */ /*S! state */ = 'undeliverable', at = ?,
    /*M! step.reason */ /*S! reason */ = 'the phone was unbound or suspended'
    WHERE step.factor = 'push' AND step.state = 'queued' AND
    /*S! challenge_id IN (SELECT c.id FROM challenge c WHERE */ c.user_id = ? AND c.decided_at IS NULL /*S! ) */
    AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.challenge_id = step.challenge_id AND o.kind = 'push'
    AND o.dead_at IS NULL)
    AND EXISTS (SELECT 1 FROM audit WHERE operation = ?)
    """)
