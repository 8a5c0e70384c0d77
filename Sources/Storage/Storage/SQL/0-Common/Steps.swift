import Domain
import Relay
import World

/// What was tried under a challenge. A step has its end with the challenge at the latest: `refused`, `undeliverable`,
/// `expired`, `answered` and `skipped` never change again.
enum Steps {
    /// Of the challenges of a user that this very change ended, without an answer of their own: what was under way led
    /// to nothing.
    static func skip(of user: UserID, at now: Timestamp, by operation: Operation) -> BoundStatement {
        BoundStatement(skipped, .timestamp(now), .id(user), .id(operation))
    }

    /// Of a factor that this very change dropped, or sent anew from elsewhere: what was under way by it leads to nothing.
    static func giveUp(_ factor: Factor, of user: UserID, at now: Timestamp, by operation: Operation) -> BoundStatement
    {
        BoundStatement(factorGone, .timestamp(now), .word(factor), .id(user), .id(operation))
    }

    /// Of a user whose pushes to a phone this very change dropped: there may be no other to wait for.
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
