import Attestation
import Domain
import World

@testable import Relay
@testable import Storage

extension Sample {
    static let insertAttestation = Statement(
        "INSERT INTO attestation VALUES (:device, :user, 'valid', '', '{}', '{}', 'code', NULL, 0, :now, :operation, NULL)"
    )

    /// Returns the phone with an attestation.
    static func attested(_ phone: NewDevice) -> NewDevice {
        var phone = phone
        phone.attestation = AttestationRow(
            device: phone.id, verdict: .valid, faults: [], facts: "{}", statement: "{}", activationCode: "code",
            appKey: nil, counter: 0, judgedAt: now, binding: nil)
        return phone
    }

    /// Runs every statement about attestations, except those of a binding and an approval.
    static func runAttestations(on store: Store, _ operation: () -> Domain.Operation) async throws {
        _ = try await store.attestation(of: id(12))
        _ = try await store.attestations(of: id(12))
        _ = try await store.report(of: id(12))
        let refused = NotAttested(fault: .root, website: website, user: id(12), device: id(12), at: now)
        try await store.recordNotAttested(refused, as: operation())
    }
}
