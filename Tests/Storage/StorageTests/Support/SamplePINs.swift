import Bytes
import Crypto
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
        _ = try await store.partingPhone(phone.id)
        _ = try await store.pinAndPolicy(of: phone)
        _ = try await store.hasChangedPIN(of: phone, by: operation())
        _ = try await store.isUsed(anyOf: [key(1), key(2)])
        try await runUnlockCodes(of: phone, on: store, operation)
        var closing = ChallengeEnd(
            challenge: id(15),
            life: ChallengeLife(state: .answered, decision: .approve, reason: nil, expiresAt: later),
            device: phone, event: "challenge.answered", at: now)
        closing.pin = JudgedPIN(version: 1, failures: 1, isRight: true)
        _ = try await store.close(closing, as: operation())
    }

    private static func runUnlockCodes(
        of phone: PhoneCredential, on store: Store, _ operation: () -> Domain.Operation
    ) async throws {
        let issuing = operation()
        let sealer = try Sealer(keys: [Sealer.Key(id: "key", key: Secret([UInt8](repeating: 1, count: 32)))])
        let new = try NewUnlockCode(
            OperationSecret(drawnFrom: SystemRandomness()), for: phone.id, of: phone.user, website: website, at: now,
            as: issuing, by: sealer, SystemRandomness())
        _ = try await store.run(UnlockCodes.issue(new, as: issuing))
        _ = try await store.unlockSecret(of: issuing.id)
        let issued = UnlockCode.Issued(operation: issuing.id, counter: 1, expiresAt: later, failures: 0)
        _ = try await store.countWrong(WrongUnlockCode(phone: phone, issued: issued, at: now), as: operation())
        _ = try await store.run(UnlockCodes.withdraw(phone.id, of: phone.user, at: now, as: operation()))
    }
}
