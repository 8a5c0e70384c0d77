import Attestation
import Domain
import JSON
import Log
import Relay
import TestSupport
import Testing
import World

/// The audit rows of phones that were not bound because of their attestations.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct AttestationRefusalTests {
    private static let required = ["attestation-ios": "required", "attestation-android": "required"]

    private func written(_ shop: AttestedShop) throws -> Int64 {
        try shop.rig.count("SELECT count(*) FROM audit WHERE event = 'attestation.refused'")
    }

    /// Somebody who has an activation code can make any number of keys.
    @Test(arguments: StoreKind.all) func newKeyCausesNoFurtherAuditRow(kind: StoreKind) async throws {
        let shop = try await AttestedShop(kind, Self.required)
        for number in 0..<10 {
            let bind = try await shop.bind(try TestPhone(pushToken: "key-\(number)"), nil)
            #expect(bind == .failure(.notAttested(.missing)))
        }
        #expect(try written(shop) == 1)
        let refused = #"twoefay_attestations_total{outcome="refused"}"#
        #expect(shop.rig.registry.number(refused) == 10)
        // Another fault is another row.
        let other = try await shop.bind(try TestPhone(pushToken: "other"), ["format": "packed"])
        #expect(other == .failure(.notAttested(.format)))
        #expect(try written(shop) == 2)
    }

    /// A website may give a user any number of codes.
    @Test(arguments: StoreKind.all) func rowsOfAUserAreLimitedInAMinute(kind: StoreKind) async throws {
        let shop = try await AttestedShop(kind, Self.required)
        let phone = try TestPhone(pushToken: "push")
        let long = JSONValue.array([JSONValue](repeating: "AA", count: 7))
        let wrongs: [(JSONValue?, AttestationFault)] = [
            (nil, .missing), (["format": "packed"], .format), (["format": "android-key"], .malformed),
            (["format": "android-key", "chain": long], .size),
        ]
        for _ in 0..<8 {
            let code = try await shop.ada.furtherCode()
            for (attestation, fault) in wrongs {
                #expect(try await shop.bind(phone, attestation, code: code) == .failure(.notAttested(fault)))
            }
        }
        #expect(try written(shop) == 30)
        #expect(shop.rig.sink.drain().count { $0.contains("event=attestation.refused") } == 32)
        shop.rig.time.advance(by: .seconds(60))
        _ = try await shop.bind(phone, nil, code: try await shop.ada.furtherCode())
        #expect(try written(shop) == 31)
    }
}
