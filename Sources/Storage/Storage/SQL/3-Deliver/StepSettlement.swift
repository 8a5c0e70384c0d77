import Domain
import Relay
import World

/// Statements that update the steps of a challenge when an entry that was sent to the user is
/// settled, whatever the courier.
///
/// `CascadeSteps.hold` must come first in the script. Entries of a challenge are then settled one
/// after the other, and each sees the result of those before it. None is settled during the end of
/// the challenge, which locks the same rows in the same order.
enum StepSettlement {
    /// Records the outcome of an entry in the steps. The statements must follow the audit row of
    /// the settlement and precede the deletion of the entry.
    ///
    /// - Parameter factor: the factor, which has the same name as the kind of its entries.
    static func came(
        of entry: OutboxEntryID, _ factor: Factor, _ state: StepState, _ reason: String?, in challenge: ChallengeID,
        at now: Timestamp, as operation: Operation
    ) -> [BoundStatement] {
        guard state != .sent else {
            return [
                markSent(challenge: .id(challenge), operation: .id(operation)),
                stepSent(
                    now: .timestamp(now), reason: .text(reason), challenge: .id(challenge), factor: .word(factor),
                    operation: .id(operation)),
            ]
        }
        return [
            stepFailed(
                state: .word(state), now: .timestamp(now), reason: .text(reason), challenge: .id(challenge),
                factor: .word(factor), entry: .id(entry), operation: .id(operation)),
            CascadeSteps.makeDue(challenge, at: now, by: operation),
        ]
    }

    private static let markSent = Statement(
        "UPDATE challenge SET state = 'sent' WHERE id = :challenge AND state = 'asked' AND \(Guards.audited)")

    /// The website still sees that another factor began because the push service was down.
    private static let stepSent = Statement(
        """
        UPDATE step SET state = 'sent', at = :now,
        reason = coalesce(:reason, CASE WHEN reason = '\(ChallengeRow.Step.pushDown)' THEN reason END)
        WHERE challenge_id = :challenge AND factor = :factor AND state = 'queued' AND \(Guards.audited)
        """)

    /// Ends a step as failed, if no other entry of its kind is under way.
    private static let stepFailed = Statement(
        """
        UPDATE step SET state = :state, at = :now, reason = :reason
        WHERE challenge_id = :challenge AND factor = :factor AND state = 'queued' AND NOT EXISTS
        (SELECT 1 FROM outbox o
        WHERE o.challenge_id = :challenge AND o.kind = :factor AND o.id <> :entry AND o.dead_at IS NULL)
        AND \(Guards.audited)
        """)

    static func drop(_ entry: OutboxEntryID, as operation: Operation) -> BoundStatement {
        dropEntry(entry: .id(entry), operation: .id(operation))
    }

    private static let dropEntry = Statement("DELETE FROM outbox WHERE id = :entry AND \(Guards.audited)")
}
