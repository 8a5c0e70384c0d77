import Domain
import Relay
import World

/// What the end of an errand that was sent to the user makes of the steps of its challenge, whoever carried it.
enum StepSettlement {
    /// The errands of a challenge are settled one after the other, each of them seeing what the ones before it left, and
    /// none in the middle of the challenge's end, which takes the same rows in the same order.
    static func hold(_ challenge: ChallengeID) -> BoundStatement { BoundStatement(holdChallenge, .id(challenge)) }

    /// To be put behind the audit of the settling, and in front of the errand's end.
    ///
    /// - Parameter factor: its kind of errand has the same name.
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

    /// Of an audit whose row says that this errand was settled just now.
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

/// A step has failed only when nothing else of its kind is still under way.
private let stepFailed = Statement(
    """
    UPDATE step SET state = ?, at = ?, reason = ?
    WHERE challenge_id = ? AND factor = ? AND state = 'queued' AND NOT EXISTS
    (SELECT 1 FROM outbox o WHERE o.challenge_id = ? AND o.kind = ? AND o.id <> ? AND o.dead_at IS NULL) AND
    """ + StepSettlement.settled)

private let dropEntry = Statement("DELETE FROM outbox WHERE id = ? AND" + StepSettlement.settled)
