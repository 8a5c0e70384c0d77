import Domain
import Relay
import World

/// Statements that use up a right code, as part of the script in which it ends its challenge.
extension UsedCode {
    /// The rows on which the right code relies, and those that it uses up.
    var rows: [SignedRows] {
        switch kind {
        case .own: [.factor(factor).signed]
        case .sent(let counter): [.factor(factor).signed, .sentCode(of: factor, counter)]
        case .recovery(let digest): [.factor(factor).signed, .recoveryCode(digest, of: user).signed]
        case .temporary: [.factor(factor).signed, .temporaryCode(of: user).signed]
        }
    }
}

/// The end of the challenge.
extension UsedCode {
    /// Ends the challenge, if the code can still be used.
    func ends(_ closing: ChallengeEnd, as operation: Operation) -> BoundStatement {
        let life = closing.life
        let state = SQLValue.word(life.state)
        let decision = SQLValue.word(life.decision)
        let reason = SQLValue.word(life.reason)
        let step = SQLValue.word(closing.factor)
        let proof = SQLValue.word(closing.proof)
        let now = SQLValue.timestamp(closing.at)
        let known = SQLValue.integer(Int64(failures))
        switch kind {
        case .own(let counter, _):
            return endByOwn(
                state: state, decision: decision, reason: reason, factor: step, proof: proof, now: now,
                operation: .id(operation), challenge: .id(closing.challenge), codeFactor: .id(factor),
                failures: known, counter: .integer(counter))
        case .sent(let counter):
            return endBySent(
                state: state, decision: decision, reason: reason, factor: step, proof: proof, now: now,
                operation: .id(operation), challenge: .id(closing.challenge), codeFactor: .id(factor),
                failures: known, counter: .integer(counter))
        case .temporary(let code, let enrolling):
            return endByTemporary(
                state: state, decision: decision, reason: reason, factor: step, proof: proof, now: now,
                operation: .id(operation), challenge: .id(closing.challenge), codeFactor: .id(factor),
                failures: known, digest: .blob(code.digest), left: .integer(Int64(code.usesLeft)),
                enrolling: .blob(enrolling))
        case .recovery(let digest):
            return endByRecovery(
                state: state, decision: decision, reason: reason, factor: step, proof: proof, now: now,
                operation: .id(operation), challenge: .id(closing.challenge), codeFactor: .id(factor),
                failures: known, digest: .blob(digest))
        }
    }
}

private let endByOwn = Statement("\(endByCode) AND f.counter = :counter)")

private let endBySent = Statement(
    """
    \(endByCode) AND EXISTS (SELECT 1 FROM sent_code s
    WHERE s.factor_id = f.id AND s.counter = :counter AND s.challenge_id = challenge.id AND s.expires_at > :now))
    """)

private let endByRecovery = Statement(
    """
    \(endByCode) AND EXISTS (SELECT 1 FROM recovery_code r
    WHERE r.user_id = f.user_id AND r.factor_id = f.id AND r.digest = :digest AND r.used_at IS NULL))
    """)

/// A temporary code answers a login. It approves the activation of a phone if it may, and nothing
/// else.
private let endByTemporary = Statement(
    """
    \(endByCode) AND EXISTS (SELECT 1 FROM temporary_code t
    WHERE t.factor_id = f.id AND t.user_id = f.user_id AND t.digest = :digest AND t.uses_left = :left
    AND \(TemporaryCodes.isUsable)
    AND (challenge.approves IS NULL OR t.may_enrol = 1 AND challenge.approves = :enrolling)))
    """)

/// The beginning of a statement that ends a challenge by a code. A condition for the factor `f` and
/// a parenthesis must follow.
private let endByCode = """
    \(ChallengeEnds.end) WHERE \(ChallengeEnds.isOpen) AND EXISTS
    (SELECT 1 FROM factor f JOIN user u ON u.id = f.user_id
    WHERE f.id = :codeFactor AND \(CodeFactors.count) AND f.user_id = challenge.user_id AND \(Guards.mayLogIn)
    AND u.codes_locked_at IS NULL AND u.code_failures = :failures
    """

/// The use of the code.
extension UsedCode {
    /// Uses the code up, and clears the failures of its factor. The failures of other factors stay.
    func usedUp(_ closing: ChallengeEnd, as operation: Operation) -> [BoundStatement] {
        let forgets = CodeFailures.right(
            factor, of: user, ending: closing.challenge, at: closing.at, by: operation)
        switch kind {
        case .own(_, let next):
            return [
                moveCounter(
                    counter: .integer(next), factor: .id(factor), challenge: .id(closing.challenge),
                    operation: .id(operation))
            ] + forgets
        case .sent: return forgets
        case .temporary(let code, _):
            return TemporaryCodes.used(code, ending: closing.challenge, at: closing.at, as: operation) + forgets
        case .recovery(let digest):
            return [
                useRecovery(
                    now: .timestamp(closing.at), user: .id(user), digest: .blob(digest),
                    challenge: .id(closing.challenge), operation: .id(operation))
            ] + forgets
        }
    }
}

private let moveCounter = Statement(
    "UPDATE factor SET counter = :counter WHERE id = :factor AND \(Guards.challengeWritten)")

private let useRecovery = Statement(
    """
    UPDATE recovery_code SET used_at = :now WHERE user_id = :user AND digest = :digest AND used_at IS NULL
    AND \(Guards.challengeWritten)
    """)

/// The notices about a used code.
extension UsedCode {
    /// Tells the website and the user that a temporary code was used. The statements must follow
    /// those that end the challenge.
    func announced(_ closing: ChallengeEnd, as operation: Operation) -> [BoundStatement] {
        guard case .temporary = kind else { return [] }
        return TemporaryCodes.useAnnounced(of: user, ending: closing.challenge, at: closing.at, as: operation)
    }

    /// The rows that `announced` writes.
    func announcedRows(as operation: Operation) -> [SignedRows] {
        guard case .temporary = kind else { return [] }
        return AccountEventRows.rows(.temporaryUsed, as: operation)
    }
}
