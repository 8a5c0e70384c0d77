import Domain
import Relay
import World

/// Statements that update the steps of a challenge when an entry that was sent to the user is
/// settled, whatever the courier.
enum StepSettlement {
    /// Locks the challenge's row. Entries of a challenge are then settled one after the other, and
    /// each sees the result of those before it. None is settled during the end of the challenge,
    /// which locks the same rows in the same order.
    static func hold(_ challenge: ChallengeID) -> BoundStatement { BoundStatement(holdChallenge, .id(challenge)) }

    /// Records the outcome of an entry in the steps. The statements must follow the audit row of
    /// the settlement and precede the deletion of the entry.
    ///
    /// - Parameter factor: the factor, which has the same name as the kind of its entries.
    static func came(
        of errand: OutboxEntryID, _ factor: Factor, _ state: StepState, _ reason: String?, in challenge: ChallengeID,
        at now: Timestamp, as operation: Operation
    ) -> [BoundStatement] {
        let hastening = CascadeSteps.makeDue(challenge, at: now, by: operation)
        let (challenge, factor) = (SQLValue.id(challenge), SQLValue.word(factor))
        guard state != .sent else {
            return [
                BoundStatement(markSent, challenge, .id(operation)),
                BoundStatement(stepSent, .timestamp(now), .text(reason), challenge, factor, .id(operation)),
            ]
        }
        return [
            BoundStatement(
                stepFailed, .word(state), .timestamp(now), .text(reason), challenge, factor, challenge, factor,
                .id(errand), .id(operation)),
            hastening,
        ]
    }

    /// The condition that the audit row of this settlement exists.
    static let settled = " EXISTS (SELECT 1 FROM audit WHERE operation = ?)"

    static func drop(_ errand: OutboxEntryID, as operation: Operation) -> BoundStatement {
        BoundStatement(dropEntry, .id(errand), .id(operation))
    }
}

private let holdChallenge = Statement("UPDATE challenge SET state = state WHERE id = ?")

private let markSent = Statement(
    "UPDATE challenge SET state = 'sent' WHERE id = ? AND state = 'asked' AND" + StepSettlement.settled)

private let stepSent = Statement(
    """
    UPDATE step SET state = 'sent', at = ?, reason = ?
    WHERE challenge_id = ? AND factor = ? AND state = 'queued' AND
    """ + StepSettlement.settled)

/// Ends a step as failed, if no other entry of its kind is under way.
private let stepFailed = Statement(
    """
    UPDATE step SET state = ?, at = ?, reason = ?
    WHERE challenge_id = ? AND factor = ? AND state = 'queued' AND NOT EXISTS
    (SELECT 1 FROM outbox o WHERE o.challenge_id = ? AND o.kind = ? AND o.id <> ? AND o.dead_at IS NULL) AND
    """ + StepSettlement.settled)

private let dropEntry = Statement("DELETE FROM outbox WHERE id = ? AND" + StepSettlement.settled)
