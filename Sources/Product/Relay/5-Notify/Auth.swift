import Bytes
import Domain
import Log
import World

// Notify reads challenges through `AnswerStore` and needs no other port for them.

/// The result of a challenge as the website gets it. If the website waits for the result, its
/// ticket is taken before the row is read.
public struct ChallengeResult: Sendable, Equatable {
    public let challenge: ChallengeID
    public let user: UserID
    public let result: ChallengeLife.Result
    public let reason: Reason?
    public let factor: Factor?
    public let assurance: Assurance?
    public let proof: Proof?
    public let device: DeviceID?
    /// The JWT that the phone signed. The website checks it against the context.
    public let receipt: String?
    public let steps: [ChallengeRow.Step]
    public let context: [UInt8]
    public let expiresAt: Timestamp
    /// The phone's place in comparison with the login's.
    public var place: PlaceComparison?
    /// The user verification with an age that the phone signed with a success; nil without an age.
    public var verified: VerifiedUser?
    /// The judgement of the phone's attestation and posture; nil if it was not judged.
    public var attested: AttestedAnswer?
    /// The facts about the page that has approved; nil for another phone.
    public var web: WebAnswer?
    /// The phone's attestation, for a website that verifies it itself.
    public internal(set) var evidence: AttestationRow?
}

extension Relay {
    /// The time for which a result can be read after the end.
    public static let resultLifetime = Duration.seconds(24 * 3600)

    /// The result of a challenge. If a token is given too, it must name the user of the challenge.
    public func result(
        _ challenge: ChallengeID, of token: UserToken? = nil, to website: Website
    ) async throws(Refusal) -> ChallengeResult {
        let row = try await withStore("auth") { () async throws(StoreFailure) in
            try await store.challenge(challenge, of: website.id)
        }
        guard let row, let reported = result(try await settled(row)) else { throw .notFound }
        try agree(row, token)
        return try await withEvidence(reported)
    }

    /// The result of the newest challenge of a user, in the original form; nil if there is no
    /// result.
    public func result(token: UserToken, to website: Website) async throws(Refusal) -> ChallengeResult? {
        guard website.policy.answers == .website else { throw Self.challengeMissing }
        guard let row = try await newest(token, of: website) else { return nil }
        guard let reported = result(try await settled(row)) else { return nil }
        return try await withEvidence(reported)
    }

    /// The refusal of a request without a challenge. A token names a challenge only for websites
    /// that answer for their users.
    static let challengeMissing = Refusal.forbidden(
        LocalizedText(
            "challenge must be given: token selects one only for a website whose policy is answers: website",
            de: "challenge fehlt: token wählt nur für eine Website mit der Richtlinie answers: website eine Challenge"))

    func agree(_ row: ChallengeRow, _ token: UserToken?) throws(Refusal) {
        guard token == nil || token == row.token else {
            throw .conflict([
                FieldFault(
                    "token", .mismatch,
                    LocalizedText("names another user than challenge", de: "nennt einen anderen Benutzer als challenge")
                )
            ])
        }
    }

    /// The longest time to hold a request for this challenge, at most until the challenge expires.
    public func waitLimit(_ reported: ChallengeResult, wanted: Duration) -> Duration {
        min(wanted, max(.zero, reported.expiresAt - time.now()))
    }

    /// The challenge in a state that may be reported. If only the clock says that it has expired,
    /// the relay writes the expiry first and then reads the challenge again: an answer that came in
    /// time may be written before.
    func settled(_ row: ChallengeRow) async throws(Refusal) -> ChallengeRow {
        let seen = row.life.seen(at: time.now())
        guard !row.life.state.isEnd, seen.state.isEnd else { return row }
        let closing = ChallengeEnd(
            challenge: row.id, life: seen, event: "challenge.expired", at: row.life.expiresAt)
        _ = try await end(closing, as: operations.new())
        return try await withStore("challenge") { () async throws(StoreFailure) in
            try await store.challenge(row.id, of: row.user)
        } ?? row
    }

    /// The result of a challenge; nil if its lifetime is over.
    func result(_ row: ChallengeRow) -> ChallengeResult? {
        let now = time.now()
        let reported = ChallengeResult(row, steps: steps(of: row), at: now)
        let endedAt = row.decidedAt ?? (reported.result == .wait ? now : row.life.expiresAt)
        return now < endedAt + Self.resultLifetime ? reported : nil
    }
}

extension ChallengeResult {
    /// The result at the given time, however long ago the challenge ended.
    init(_ row: ChallengeRow, steps: [ChallengeRow.Step]? = nil, at now: Timestamp) {
        let life = row.life.seen(at: now)
        self.init(
            challenge: row.id, user: row.user, result: life.result, reason: life.reason, factor: row.factor,
            assurance: life.result == .success ? row.factor.map { Self.assurance(row, $0) } : nil,
            proof: row.proof, device: row.device, receipt: row.receipt, steps: steps ?? row.steps, context: row.context,
            expiresAt: row.life.expiresAt, place: row.place,
            verified: life.result == .success && Self.demandsVerification(row)
                ? row.receipt.flatMap { VerifiedUser(receipt: $0, uv: row.uv) } : nil,
            attested: row.attested, web: life.result == .success ? row.web : nil)
    }

    /// Whether the website demanded a recent verification. Otherwise the phone would decide what the
    /// website sees.
    private static func demandsVerification(_ row: ChallengeRow) -> Bool {
        (try? texts.policy(changedBy: row.policy))?.maxUVAge != nil
    }

    /// The policies of challenges, without those of the installation.
    private static let texts = ReadPolicies(Policy())

    private static func assurance(_ row: ChallengeRow, _ factor: Factor) -> Assurance {
        let assurance = Assurance(factor: factor, numberAsked: row.number != nil, uv: row.uv ?? .none)
        return row.web?.limit(assurance) ?? assurance
    }
}
