import Domain
import Relay
import World

@testable import Storage

extension Sample {
    /// Runs every statement about PINs of phones.
    static func runPINs(on store: Store, _ operation: () -> Domain.Operation) async throws {
        let phone = PhoneCredential(
            id: id(15), user: id(15), key: key(15), publicKey: [],
            website: WebsiteRow(id: website, name: "shop", displayName: "Shop", policy: "{}"), failures: 0,
            failedAt: nil, isCertified: true)
        let change = PINChange(of: phone, .set, key: [4], pukKey: [4], present: PhonePIN(), at: now)
        _ = try await store.store(change, as: operation())
        _ = try await store.countWrong(
            WrongPIN(.pin, of: phone, version: 1, challenge: nil, at: now), as: operation())
        _ = try await store.pin(of: phone)
        _ = try await store.pinAndPolicy(of: phone)
        _ = try await store.hasChangedPIN(of: phone, by: operation())
        var closing = ChallengeEnd(
            challenge: id(15),
            life: ChallengeLife(state: .answered, decision: .approve, reason: nil, expiresAt: later),
            device: phone, event: "challenge.answered", at: now)
        closing.pin = JudgedPIN(version: 1, failures: 1, isRight: true)
        _ = try await store.close(closing, as: operation())
    }
}
