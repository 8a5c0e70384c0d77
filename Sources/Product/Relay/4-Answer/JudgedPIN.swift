import Domain
import JSON
import World

/// The PIN of a phone at its approval. The end of the challenge is written only if the PIN and its
/// count are still the same.
public struct JudgedPIN: Sendable, Equatable {
    public let version: Int
    public let failures: Int
    /// Whether the approval was signed with the PIN; false if the phone has none and needs none.
    public let isRight: Bool

    public init(version: Int, failures: Int, isRight: Bool) {
        self.version = version
        self.failures = failures
        self.isRight = isRight
    }

    func isOutdated(by pin: PhonePIN) -> Bool { pin.version != version || pin.failures != failures }
}

extension Relay {
    /// Judges the signature of the PIN over an approval. Returns nil if the website does without
    /// PINs.
    ///
    /// A wrong PIN leaves the challenge open and costs a try. Everything else that an approval needs
    /// was judged before, except the number: a guess of the number never spares one of the PIN.
    func judgePIN(
        _ row: ChallengeRow, _ policy: Policy, receipt: String?, signature: String?, by phone: PhoneCredential
    ) async throws(Refusal) -> JudgedPIN? {
        guard policy.pin != .none else { return nil }
        let pin = phone.pin
        guard pin.key != nil else {
            guard policy.pin == .required else {
                return JudgedPIN(version: pin.version, failures: pin.failures, isRight: false)
            }
            throw await refused(.pinMissing, row.id, by: phone, as: .pin(.unset))
        }
        guard !pin.isLocked else { throw await refused(.pinLocked, row.id, by: phone, as: .pin(.locked)) }
        guard let receipt, let signature else {
            throw await refused(.pinMissing, row.id, by: phone, as: .pin(.unsigned))
        }
        do throws(Refusal) {
            try await compare(
                signature, over: PINSignature.input(of: receipt), .pin, pin, of: phone, challenge: row.id)
        } catch {
            switch error {
            case .pin(.locked): throw await refused(.pinLocked, row.id, by: phone, as: error)
            case .pin: throw await refused(.pinWrong, row.id, by: phone, as: error)
            default: throw error
            }
        }
        return JudgedPIN(version: pin.version, failures: pin.failures, isRight: true)
    }

    /// Returns the phone with its present PIN if that is no longer the judged one; nil otherwise.
    func phone(_ phone: PhoneCredential, judged: JudgedPIN?) async throws(Refusal) -> PhoneCredential? {
        guard let judged else { return nil }
        let present = try await withStore("pin") { () async throws(StoreFailure) in try await store.pin(of: phone) }
        guard let present, judged.isOutdated(by: present) else { return nil }
        var phone = phone
        phone.pin = present
        return phone
    }
}

extension Policy {
    /// The demand on the PIN of a phone that approves, as the phone gets it; nil if there is none.
    func pinDemand(on pin: PhonePIN) -> String? {
        switch (self.pin, pin.state) {
        case (.none, _), (.optional, .none): nil
        case (.required, .none): "set"
        case (_, .set): "sign"
        case (_, .locked): "locked"
        }
    }
}
