import Attestation
import Domain
import JSON
import Relay
import TestSupport
import Testing
import World

/// The end of a stored attestation, with its phone.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct AttestationEndTests {
    private static let recorded = ["attestation-ios": "recorded", "attestation-android": "recorded", "devices": "9"]

    private func attested(_ rig: RelayRig) throws -> Int64 { try rig.count("SELECT count(*) FROM attestation") }

    /// The certificates of a phone say which phone it was, and nobody needs them any more.
    @Test(arguments: StoreKind.all) func unboundPhoneLeavesNoAttestation(kind: StoreKind) async throws {
        let shop = try await AttestedShop(kind, Self.recorded)
        let first = try await shop.bound(.android)
        let second = try await shop.bound(.ios, code: try await shop.ada.furtherCode())
        let asked = try await shop.ada.login()
        #expect(try await shop.answer(by: first, asked.challenge) == .success(.success))
        // A suspended phone may be resumed.
        _ = try await shop.rig.on { relay in
            try await relay.change(
                first.credential.id, ofUser: "ada", name: nil, state: .suspended, by: shop.website)
        }
        #expect(try attested(shop.rig) == 2)
        try await shop.rig.on { relay in
            try await relay.unbind(first.credential.id, ofUser: "ada", by: shop.website)
        }
        #expect(try await shop.stored(first) == nil)
        #expect(try await shop.stored(second)?.verdict == .valid)
        // The result keeps the facts of the approval.
        let json = try await shop.ada.reported(asked.challenge).json()["attestation"]?.object
        #expect(json?["verdict"] == "valid" && json?["facts"] != nil && json?["evidence"] == nil)
        try await shop.rig.on { relay in
            let phone = try await relay.device(second.credential.id, key: second.credential.key, isCertified: true)
            try await relay.unbind(by: phone)
        }
        #expect(try attested(shop.rig) == 0)
    }

    /// A recovery unbinds the phones that it replaces.
    @Test(arguments: StoreKind.all) func replacedPhoneLeavesNoAttestation(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, Self.recorded)
        #expect(try attested(fixture.rig) == 1)
        let before = try #require(fixture.phone)
        let handle = try await fixture.opened(.push)
        _ = try await fixture.proved(handle)
        fixture.rig.time.advance(by: .seconds(25 * 3600))
        let shop = fixture.shop
        let code = try await fixture.rig.on { relay in
            try await relay.recoverPhone(handle: handle, by: shop, as: relay.operations.new())
        }.code
        let after = try await fixture.ada.bound(try TestPhone(pushToken: "new"), code)
        #expect(after.id != before.id)
        #expect(try attested(fixture.rig) == 1)
        let kept = "SELECT lower(hex(device_id)) AS value FROM attestation"
        #expect(try fixture.rig.text(kept) == after.id.text)
    }
}
