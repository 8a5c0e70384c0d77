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

    /// Returns a phone that is a page.
    static func page(_ number: Int, of user: Int) -> NewDevice {
        var page = NewDevice(
            id: id(number), user: id(user), name: nil, platform: .web, environment: .production, pushToken: "",
            publicKey: nil, thumbprint: key(number), revocation: nil, binding: nil, approval: nil, at: now)
        page.page = BoundPage(
            claims: WebPhone(app: "https://phone.example.com", passkey: nil), isApart: true)
        return page
    }

    /// Runs every statement about attestations and pages, except those of an approval, and of a
    /// binding with an attestation.
    static func runAttestations(on store: Store, _ operation: () -> Domain.Operation) async throws {
        _ = try await store.attestation(of: id(12))
        _ = try await store.attestations(of: id(12))
        _ = try await store.report(of: id(12))
        _ = try await store.bind(
            page(9005, of: 12), digest: key(12), slots: 5, secret: secret(9005), as: operation())
        _ = try await store.webPhone(id(12))
        _ = try await store.webPhones(of: id(12))
        let refused = NotAttested(fault: .root, website: website, user: id(12), device: id(12), at: now)
        try await store.recordNotAttested(refused, as: operation())
    }
}
