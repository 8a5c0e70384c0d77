import Domain
import World

extension Relay {
    /// A code that the user typed. No factor of this relay sends codes, so every code is a wrong one and counts.
    /// Where the website answers for its users, their token names the challenge.
    public func backup(
        _ challenge: ChallengeID?, of token: UserToken?, by website: Website, as operation: Operation
    ) async throws(Refusal) -> Told {
        guard challenge != nil || website.policy.answers == .website else { throw Self.challengeMissing }
        guard let found = try await self.row(challenge, of: token, website, for: operation) else { throw .notFound }
        let now = time.now()
        let row = try await settled(found)
        guard !row.life.state.isEnd else { throw .alreadyDecided(result: row.life.result.rawValue) }
        let limit = try policy(of: row).guesses
        let counted = try await ask("backup") { () async throws(StoreFailure) in
            try await store.countGuess(row.id, limit: limit, at: now, as: operation)
        }
        guard counted else {
            metrics.reached(.guess)
            throw .limited(retryAfter: row.life.expiresAt - now)
        }
        guard let told = told(row) else { throw .notFound }
        return told
    }
}
