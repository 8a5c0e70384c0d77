import Bytes
import Domain
import Log
import World

// Tell reads challenges through the port of Answer: it needs no other.

/// What the website is told. Where it also waits, the ticket was taken before the row was read.
public struct ChallengeResult: Sendable, Equatable {
    public let challenge: ChallengeID
    public let user: UserID
    public let result: ChallengeLife.Result
    public let reason: Reason?
    public let factor: Factor?
    public let assurance: Assurance?
    public let proof: Proof?
    public let device: DeviceID?
    /// What that phone signed, for the website to check against the context.
    public let receipt: String?
    public let steps: [ChallengeRow.Step]
    public let context: [UInt8]
    public let expiresAt: Timestamp
}

extension Relay {
    /// How long an end can be read.
    public static let resultLifetime = Duration.seconds(24 * 3600)

    /// Of a token given beside the challenge, it must be the user's whom the challenge asks.
    public func result(
        _ challenge: ChallengeID, of token: UserToken? = nil, to website: Website
    ) async throws(Refusal) -> ChallengeResult {
        let row = try await withStore("auth") { () async throws(StoreFailure) in
            try await store.challenge(challenge, of: website.id)
        }
        guard let row, let told = result(try await settled(row)) else { throw .notFound }
        try agree(row, token)
        return told
    }

    /// The original's form: by token. Nil when there is nothing to tell.
    public func result(token: UserToken, to website: Website) async throws(Refusal) -> ChallengeResult? {
        guard website.policy.answers == .website else { throw Self.challengeMissing }
        guard let row = try await newest(token, of: website) else { return nil }
        return result(try await settled(row))
    }

    /// A token names a challenge only for websites that answer for their users.
    static let challengeMissing = Refusal.invalid([FieldFault("challenge", .missing, "must be given")])

    func agree(_ row: ChallengeRow, _ token: UserToken?) throws(Refusal) {
        guard token == nil || token == row.token else {
            throw .invalid([FieldFault("token", .mismatch, "is not the user whom challenge asks")])
        }
    }

    /// How long a request may be held for this challenge: not beyond its end.
    public func waitLimit(_ told: ChallengeResult, wanted: Duration) -> Duration {
        min(wanted, max(.zero, told.expiresAt - time.now()))
    }

    /// The challenge as it may be told. An end that the clock alone says is written down first, and then the store says
    /// what it is: an answer that came in time may still be on its way there.
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

    /// Nil once it is told no more.
    func result(_ row: ChallengeRow) -> ChallengeResult? {
        let now = time.now()
        let told = ChallengeResult(row, at: now)
        let endedAt = row.decidedAt ?? (told.result == .wait ? now : row.life.expiresAt)
        return now < endedAt + Self.resultLifetime ? told : nil
    }
}

extension ChallengeResult {
    /// What there is to tell then, however long ago it ended.
    init(_ row: ChallengeRow, at now: Timestamp) {
        let life = row.life.seen(at: now)
        self.init(
            challenge: row.id, user: row.user, result: life.result, reason: life.reason, factor: row.factor,
            assurance: life.result == .success ? row.factor.map { Self.assurance(row, $0) } : nil,
            proof: row.proof, device: row.device, receipt: row.receipt, steps: row.steps, context: row.context,
            expiresAt: row.life.expiresAt)
    }

    private static func assurance(_ row: ChallengeRow, _ factor: Factor) -> Assurance {
        Assurance(factor: factor, numberAsked: row.number != nil, uv: row.uv ?? .none)
    }
}
