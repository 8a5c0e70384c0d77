import Attestation
import Domain
import JSON
import Relay
import Storage
import TestSupport
import Testing
import World

/// The end of a stored attestation: with its phone, or by a later binding.
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

    /// Somebody restores the attestation of an earlier binding. Its MAC is right, and the audit has
    /// the later binding.
    @Test(arguments: StoreKind.all) func restoredAttestationIsOutdated(kind: StoreKind) async throws {
        let shop = try await AttestedShop(kind, Self.recorded)
        let bound = try await shop.bound(.android)
        let device = bound.credential.id.text
        let (mine, kept) = ("device_id = x'\(device)'", String(repeating: "ee", count: 16))
        let columns = "verdict, faults, facts, statement, activation_code, app_key, counter, judged_at, operation, mac"
        // The attacker keeps a copy under another id.
        try shop.rig.forge(
            """
            INSERT INTO attestation (device_id, user_id, \(columns))
            SELECT x'\(kept)', x'\(kept)', \(columns) FROM attestation WHERE \(mine)
            """)
        let user = try shop.rig.text("SELECT lower(hex(user_id)) AS value FROM attestation WHERE \(mine)")
        shop.rig.time.advance(by: .seconds(1))
        _ = try await shop.bound(nil, code: try await shop.ada.furtherCode(), nil, bound.phone)
        #expect(try await shop.stored(bound)?.verdict == .missing)
        let store = shop.rig.store
        let none = try await shop.rig.on { _ in try await store.run(OutdatedRow.all) }
        #expect(none.filter { $0.key == bound.credential.id.bytes }.isEmpty)

        try shop.rig.forge("DELETE FROM attestation WHERE \(mine)")
        try shop.rig.forge(
            "UPDATE attestation SET \(mine), user_id = x'\(user)' WHERE device_id = x'\(kept)'")
        #expect(try await shop.stored(bound)?.verdict == .valid)
        let found = try await shop.rig.on { _ in try await store.run(OutdatedRow.all) }
        #expect(found.map(\.table) == ["attestation"])
        #expect(found.first?.key == bound.credential.id.bytes && found.first?.event == "device.bound")
    }

    /// The approval of a waiting phone is another event than the binding that stored the
    /// attestation.
    @Test(arguments: StoreKind.all) func attestationOfAnApprovedPhoneIsNotOutdated(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let ada = try await Person.registered("ada", at: try await rig.shop("shop", Self.recorded), rig)
        let code = try await ada.furtherCode()
        let first = try await ada.bound(try TestPhone(pushToken: "first"), ada.code)
        rig.time.advance(by: .seconds(1))
        let second = try TestPhone(pushToken: "second")
        let number = try #require(await ada.bind(second, code).number)
        await rig.settled()
        rig.time.advance(by: .seconds(1))
        #expect(try await ada.decide(try ada.lastAsked(), .approve, number, by: first) == .success)
        #expect(await ada.bind(second, code).bound != nil)
        #expect(try attested(rig) == 2)
        let store = rig.store
        let found = try await rig.on { _ in try await store.run(OutdatedRow.all) }
        #expect(found.filter { $0.table == "attestation" }.isEmpty)
    }
}
