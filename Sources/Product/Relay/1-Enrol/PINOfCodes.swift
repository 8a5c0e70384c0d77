import Domain
import Log
import World

/// The PIN for the secret of a phone's codes. A code of the phone counts as much as an approval, so
/// a phone whose approvals need the PIN gets the secret only with the PIN.
///
/// Invariant: the delivery is written only if the PIN and its count are those with which the
/// signature was judged (`JudgedPIN`). Guesses at the secret and at approvals share one count.
///
/// Tests: `RelayTests/PINOfCodesTests.swift`.
extension Relay {
    /// Judges the PIN's signature over a statement of the phone, by the policy of its user. Returns
    /// nil if the phone needs no PIN. Throws if that policy excludes codes of phones.
    func judgePIN(
        over statement: String, signature: String?, _ website: Website, of phone: PhoneCredential
    ) async throws(Refusal) -> JudgedPIN? {
        let found = try await withStore("pin") { () async throws(StoreFailure) in
            try await store.pinAndPolicy(of: phone)
        }
        guard let found else { throw .unauthenticated }
        let policy = try policy(of: phone, website, changedBy: found.policy)
        if let demand = policy.demandAgainstPhoneCodes { throw Self.codesMeetNo(demand) }
        let use = policy.pin
        guard use != .none else { return nil }
        let pin = found.pin
        guard pin.key != nil else {
            guard use == .required else {
                return JudgedPIN(version: pin.version, failures: pin.failures, isRight: false)
            }
            throw .pin(.unset)
        }
        guard !pin.isLocked else { throw .pin(.locked) }
        guard let signature else { throw .pin(.unsigned) }
        try await compare(signature, over: PINSignature.input(of: statement), .pin, pin, of: phone, challenge: nil)
        return JudgedPIN(version: pin.version, failures: pin.failures, isRight: true)
    }

    /// Returns the policy of this phone's user: that of the website, with the changes of the user's
    /// group.
    private func policy(
        of phone: PhoneCredential, _ website: Website, changedBy changes: String?
    ) throws(Refusal) -> Policy {
        guard let changes else { return website.policy }
        do throws(Policy.Fault) {
            return try website.policy.changed(by: changes)
        } catch {
            log.error("user.policy", [.website: website.name, .user: phone.user.text, .reason: error.message])
            throw .broken
        }
    }
}
