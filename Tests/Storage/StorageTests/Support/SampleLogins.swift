import Bytes
import Domain
import World

@testable import Relay
@testable import Storage

/// Logins of the sample's users. A user's phone has the user's number.
extension Sample {
    static let request = IdempotentRequest(website: website, route: "/login", key: "key", content: [])

    /// The approval of a challenge by the user's phone.
    static func approval(of challenge: Int, by user: Int, as factor: Factor = .push) -> ChallengeEnd {
        let website = WebsiteRow(id: website, name: "shop", displayName: "Shop", policy: "{}")
        return ChallengeEnd(
            challenge: id(challenge),
            life: ChallengeLife(state: .answered, decision: .approve, reason: nil, expiresAt: later),
            factor: factor, proof: .signed,
            device: PhoneCredential(
                id: id(user), user: id(user), key: key(user), publicKey: [], website: website, failures: 0,
                failedAt: nil, isCertified: true),
            receipt: "receipt", uv: .biometric, place: PlaceComparison(check: .near, distance: 3),
            event: "challenge.answered", at: now + .seconds(10))
    }

    /// Asks a user without an open challenge, and lets the phone approve.
    static func logIn(_ user: Int, on store: Store) async throws {
        let operations = Operations(
            masterKey: Secret([UInt8](repeating: 1, count: 32)), randomness: SystemRandomness())
        _ = try await store.ask(asked(user + 20_000, of: user), within: limits, as: operations.new())
        _ = try await store.close(approval(of: user + 20_000, by: user), as: operations.new())
    }
}
