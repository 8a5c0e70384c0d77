import Domain
import Relay
import World

/// Statements that end steps of challenges. A step ends with its challenge at the latest. The
/// states `refused`, `undeliverable`, `expired`, `answered` and `skipped` are final.
enum Steps {
    /// Skips the unfinished steps of the user's challenges that this change ended without an
    /// answer.
    static func skip(of user: UserID, at now: Timestamp, by operation: Operation) -> BoundStatement {
        skipUnfinished(now: .timestamp(now), user: .id(user), operation: .id(operation))
    }

    private static let skipUnfinished = Statement(
        """
        UPDATE step /*M! JOIN challenge c ON c.id = step.challenge_id */
        SET /*M! step.state */ /*S! state */ = 'skipped', at = :now WHERE step.state IN ('queued', 'sent', 'seen') AND
        /*S! challenge_id IN (SELECT c.id FROM challenge c WHERE */
        c.user_id = :user AND c.operation = :operation AND c.decided_at IS NOT NULL /*S! ) */
        """)

    /// Makes unfinished steps of a factor undeliverable, after this change removed the factor or
    /// replaced its address.
    static func giveUp(_ factor: Factor, of user: UserID, at now: Timestamp, by operation: Operation) -> BoundStatement
    {
        giveUpFactor(now: .timestamp(now), factor: .word(factor), user: .id(user), operation: .id(operation))
    }

    private static let giveUpFactor = Statement(
        """
        UPDATE step /*M! JOIN challenge c ON c.id = step.challenge_id */
        SET /*M! step.state */ /*S! state */ = 'undeliverable', at = :now,
        /*M! step.reason */ /*S! reason */ = 'the factor was dropped or replaced'
        WHERE step.factor = :factor AND step.state IN ('queued', 'sent') AND
        /*S! challenge_id IN (SELECT c.id FROM challenge c WHERE */
        c.user_id = :user AND c.decided_at IS NULL /*S! ) */
        AND \(Guards.audited)
        """)

    /// Makes queued push steps of a user undeliverable, after this change deleted pushes to a
    /// phone. Steps with another push in the outbox stay.
    static func giveUpPushes(to user: UserID, at now: Timestamp, by operation: Operation) -> BoundStatement {
        giveUpQueuedPushes(now: .timestamp(now), user: .id(user), operation: .id(operation))
    }

    private static let giveUpQueuedPushes = Statement(
        """
        UPDATE step /*M! JOIN challenge c ON c.id = step.challenge_id */
        SET /*M! step.state */ /*S! state */ = 'undeliverable', at = :now,
        /*M! step.reason */ /*S! reason */ = 'the phone was unbound or suspended'
        WHERE step.factor = 'push' AND step.state = 'queued' AND
        /*S! challenge_id IN (SELECT c.id FROM challenge c WHERE */
        c.user_id = :user AND c.decided_at IS NULL /*S! ) */
        AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.challenge_id = step.challenge_id AND o.kind = 'push'
        AND o.dead_at IS NULL)
        AND \(Guards.audited)
        """)
}
