import Domain
import Relay

/// The columns of a complete challenge.
enum Challenges {
    /// The columns of the challenge `c` and its user `u`.
    static let columns = """
        c.id, c.user_id, c.state, c.decision, c.reason, c.expires_at, c.policy, c.context, c.number, c.factor, c.proof,
        c.device_id, c.decided_at, c.operation, u.token, c.nonce, c.receipt, c.uv, c.approves
        """
}

extension Row {
    /// Reads `Challenges.columns`, starting at the column `first`.
    func challenge(_ first: Int, _ steps: [ChallengeRow.Step]) throws(StoreFailure) -> ChallengeRow {
        let life = ChallengeLife(
            state: try word(first + 2), decision: try optionalWord(first + 3), reason: try optionalWord(first + 4),
            expiresAt: try timestamp(first + 5))
        return ChallengeRow(
            id: try id(first), user: try id(first + 1), token: try id(first + 14), life: life,
            policy: try text(first + 6), context: try blob(first + 7), nonce: try blob(first + 15),
            number: try optionalText(first + 8), factor: try optionalWord(first + 9),
            proof: try optionalWord(first + 10), device: try optionalID(first + 11),
            receipt: try optionalText(first + 16), uv: try optionalWord(first + 17),
            approves: try optionalBlob(first + 18), decidedAt: try optionalTimestamp(first + 12),
            operation: try id(first + 13), steps: steps)
    }
}
