import Domain
import Relay

/// The columns of a complete challenge, and how they are read.
enum Challenges {
    /// The columns of the challenge `c` and its user `u`.
    static let columns = """
        c.id AS challenge_id, c.user_id AS challenge_user_id, c.expires_at AS challenge_expires_at,
        c.policy AS challenge_policy, c.context AS challenge_context, c.number AS challenge_number,
        c.nonce AS challenge_nonce, c.approves AS challenge_approves, \(others)
        """

    /// Those of them that a checked read of the challenge does not have.
    static let others = """
        c.state AS challenge_state, c.decision AS challenge_decision, c.reason AS challenge_reason,
        c.factor AS challenge_factor, c.proof AS challenge_proof, c.device_id AS challenge_device_id,
        c.decided_at AS challenge_decided_at, c.operation AS challenge_operation, u.token AS challenge_token,
        c.receipt AS challenge_receipt, c.uv AS challenge_uv, c.place_check AS challenge_place_check,
        c.place_distance AS challenge_place_distance, c.attested AS challenge_attested,
        c.assertion AS challenge_assertion, c.trace AS challenge_trace, c.asked_at AS challenge_asked_at
        """

    static func read(_ row: Row, _ steps: [ChallengeRow.Step]) throws(StoreFailure) -> ChallengeRow {
        let life = ChallengeLife(
            state: try row.word("challenge_state"), decision: try row.optionalWord("challenge_decision"),
            reason: try row.optionalWord("challenge_reason"), expiresAt: try row.timestamp("challenge_expires_at"))
        let check: PlaceCheck? = try row.optionalWord("challenge_place_check")
        let distance = try row.optionalInteger("challenge_place_distance").map { Int($0) }
        let assertion = try row.optionalText("challenge_assertion")
        let web = assertion.flatMap { WebAnswer(stored: $0) }
        let attested = try row.optionalText("challenge_attested").map { facts in
            AttestedAnswer(facts: facts, assertion: web == nil ? assertion : nil)
        }
        return ChallengeRow(
            id: try row.id("challenge_id"), user: try row.id("challenge_user_id"), token: try row.id("challenge_token"),
            life: life, policy: try row.text("challenge_policy"), context: try row.context("challenge_context"),
            nonce: try row.blob("challenge_nonce"), number: try row.optionalText("challenge_number"),
            factor: try row.optionalWord("challenge_factor"), proof: try row.optionalWord("challenge_proof"),
            device: try row.optionalID("challenge_device_id"), receipt: try row.optionalReceipt("challenge_receipt"),
            uv: try row.optionalWord("challenge_uv"), approves: try row.optionalBlob("challenge_approves"),
            trace: try row.optionalText("challenge_trace").flatMap { TraceParent($0) },
            askedAt: try row.timestamp("challenge_asked_at"),
            decidedAt: try row.optionalTimestamp("challenge_decided_at"),
            operation: try row.id("challenge_operation"), steps: steps,
            place: check.map { PlaceComparison(check: $0, distance: distance) }, attested: attested, web: web)
    }
}

extension Row {
    /// The life of a challenge in the columns `state`, `decision`, `reason` and `expires_at`.
    func life() throws(StoreFailure) -> ChallengeLife {
        ChallengeLife(
            state: try word("state"), decision: try optionalWord("decision"), reason: try optionalWord("reason"),
            expiresAt: try timestamp("expires_at"))
    }
}
