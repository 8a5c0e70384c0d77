import Domain
import Relay
import World

/// The end of a challenge by a wrong code, under a policy that permits no further one. Its
/// statements belong to the script that counts the code, so that either both happen or neither.
/// They have an operation of their own, because each operation has one audit row.
struct WrongCodeEnd {
    private let script: CloseScript
    /// The operation that counts the code.
    private let counting: Operation

    /// Creates the end; nil if the challenge stays open.
    init?(_ wrong: WrongCode, _ counting: Operation) {
        guard let end = wrong.end else { return nil }
        script = CloseScript(closing: end, operation: WrongCode.ending(counting))
        self.counting = counting
    }

    /// The statements, which must follow the audit row of the wrong code. They precede those of a
    /// code lock, so that the website is notified of the end before the lock.
    var writes: [BoundStatement] {
        let life = script.closing.life
        let end = endCounted(
            state: .word(life.state), decision: .word(life.decision), reason: .word(life.reason),
            factor: .word(script.closing.factor), proof: .word(script.closing.proof), now: script.now,
            operation: .id(script.operation), challenge: script.challenge, counting: .id(counting))
        return [end] + script.endSteps + script.notify
    }

    /// The rows that the end writes. It only takes rights away.
    var rows: [SignedRows] {
        [
            .challenge(script.closing.challenge).lenient,
            LoginDecidedRows.row(script.closing.challenge, as: script.operation),
        ]
    }

    /// Reads whether the challenge has ended by this wrong code.
    var read: BoundStatement { Audit.happened(operation: .id(script.operation)) }
}

private let endCounted = Statement(
    """
    \(ChallengeEnds.end) WHERE \(ChallengeEnds.isOpen)
    AND EXISTS (SELECT 1 FROM audit WHERE operation = :counting)
    """)
