import Attestation
import Bytes
import Crypto
import Domain
import JSON
import Relay
import SimulatedAttestation
import TestSupport
import Testing
import World

/// Attestations at the enrolment: judged, recorded, and required.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct AttestedEnrolmentTests {
    private typealias Platform = AttestedDevice.Platform

    @Test(arguments: StoreKind.all) func genuineAttestationIsRecordedWithItsFacts(kind: StoreKind) async throws {
        for platform in Platform.allCases {
            let shop = try await AttestedShop(
                kind, ["attestation-ios": "required", "attestation-android": "required"])
            let phone = try TestPhone(pushToken: "push")
            let sent = try shop.attestation(platform, of: phone)
            let bound = try await shop.bound(nil, sent, phone)
            let row = try #require(try await shop.stored(bound))
            #expect(row.verdict == .valid && row.faults == [])
            #expect(row.json["facts"]?.object?["platform"] == .string(platform.rawValue))
            #expect(row.json["evidence"]?.object?["statement"] == sent)
            #expect(row.json["evidence"]?.object?["activation_code"] == .string(shop.ada.code))
            #expect(row.counter == 0)
            #expect((row.appKey == shop.iPhone.key.publicKey.x963) == (platform == .ios))
            let shown = try await shop.rig.on { relay in
                try await relay.attestations(of: bound.credential.user, at: shop.website)
            }
            #expect(shown == [bound.credential.id: row])
            #expect(try shop.rig.text("SELECT outcome AS value FROM audit WHERE event = 'device.bound'") == "valid")
            #expect(shop.rig.registry.number(#"twoefay_attestations_total{outcome="valid"}"#) == 1)
            #expect(try await shop.rig.notGenuine() == [])
        }
    }

    /// An attestation that is wrong in one point, and the fault that the relay must find.
    private struct Wrong {
        let name: String
        let fault: AttestationFault
        let attestation: JSONValue?
        var isGenuine = false
    }

    private static func wrongs(_ shop: AttestedShop, _ phone: TestPhone) async throws -> [Wrong] {
        let right = shop.subject(phone)
        let other = try TestPhone(pushToken: "other")
        func changed(
            audience: String? = nil, user: String? = nil, code: String? = nil, key: P256PublicKey? = nil
        ) -> AttestationSubject {
            AttestationSubject(
                audience: audience ?? right.audience, user: user ?? right.user,
                activationCode: code ?? right.activationCode, key: key ?? right.key)
        }
        let strange = try SimulatedAuthorities(
            root: try SimulatedCertificate.root("stranger", at: shop.rig.time.now()))
        let old = try SimulatedAuthorities(
            root: SimulatedCertificate(
                root: "simulated root", certificate: shop.authorities.root.certificate, key: shop.authorities.root.key,
                at: shop.rig.time.now() - .seconds(60 * 86_400)))
        let key = phone.key
        let further = try await shop.ada.furtherCode()
        func android(_ change: @escaping (inout SimulatedAndroid) -> Void) throws -> JSONValue {
            try shop.android(right, key: key, change)
        }
        func apple(_ change: @escaping (inout SimulatedIPhone) -> Void) throws -> JSONValue {
            try shop.apple(right, change)
        }
        return [
            Wrong(name: "none", fault: .missing, attestation: nil),
            Wrong(name: "another form", fault: .malformed, attestation: ["format": "android-key"]),
            Wrong(name: "another format", fault: .format, attestation: ["format": "packed"]),
            Wrong(
                name: "too long", fault: .size,
                attestation: ["format": "android-key", "chain": .array([JSONValue](repeating: "AA", count: 7))]),
            Wrong(
                name: "another website", fault: .challenge,
                attestation: try shop.android(changed(audience: "\(RelayRig.origin)#bank"), key: key)),
            Wrong(
                name: "another relay", fault: .challenge,
                attestation: try shop.apple(changed(audience: "https://other.example.com:8080#shop"))),
            Wrong(name: "another user", fault: .challenge, attestation: try shop.apple(changed(user: "other"))),
            Wrong(
                name: "another activation of the same user", fault: .challenge,
                attestation: try shop.android(changed(code: further), key: key)),
            Wrong(
                name: "another activation, iOS", fault: .challenge,
                attestation: try shop.apple(changed(code: further))),
            Wrong(
                name: "another key, Android", fault: .key,
                attestation: try shop.android(changed(key: other.key.publicKey), key: other.key)),
            Wrong(
                name: "another key, iOS", fault: .challenge,
                attestation: try shop.apple(changed(key: other.key.publicKey))),
            Wrong(
                name: "a root of strangers", fault: .root,
                attestation: try shop.android(right, key: key, by: strange)),
            Wrong(
                name: "a root of strangers, iOS", fault: .root,
                attestation: try shop.apple(right, by: try SimulatedIPhone(root: strange.root))),
            Wrong(
                name: "expired authorities", fault: .validity, attestation: try shop.android(right, key: key, by: old)),
            Wrong(
                name: "an expired leaf of Apple", fault: .validity,
                attestation: try apple {
                    $0.validity = (Timestamp(seconds: 1_600_000_000), Timestamp(seconds: 1_600_086_400))
                }),
            Wrong(name: "another app", fault: .app, attestation: try android { $0.package = "com.example.other" }),
            Wrong(name: "another signer", fault: .app, attestation: try android { $0.signature = [1] }),
            Wrong(name: "another App ID", fault: .app, attestation: try apple { $0.app = "TEAM123456.other" }),
            Wrong(name: "a key in software", fault: .securityLevel, attestation: try android { $0.keyLevel = 0 }),
            Wrong(name: "an imported key", fault: .origin, attestation: try android { $0.origin = 2 }),
            Wrong(name: "a key for decryption", fault: .purpose, attestation: try android { $0.purposes = [1, 2] }),
            Wrong(name: "a used key", fault: .counter, attestation: try apple { $0.counter = 1 }),
            Wrong(
                name: "an unlocked boot loader", fault: .unlocked, attestation: try android { $0.isLocked = false },
                isGenuine: true),
            Wrong(
                name: "another system", fault: .bootState, attestation: try android { $0.bootState = 1 },
                isGenuine: true),
            Wrong(
                name: "an app for development", fault: .development,
                attestation: try apple { $0.aaguid = Array("appattestdevelop".utf8) }, isGenuine: true),
        ]
    }

    @Test(arguments: StoreKind.all) func requiredAttestationMustBeFaultless(kind: StoreKind) async throws {
        let shop = try await AttestedShop(kind, ["attestation-ios": "required", "attestation-android": "required"])
        let phone = try TestPhone(pushToken: "push")
        let wrongs = try await Self.wrongs(shop, phone)
        for wrong in wrongs {
            #expect(
                try await shop.bind(phone, wrong.attestation) == .failure(.notAttested(wrong.fault)), "\(wrong.name)")
        }
        #expect(try shop.rig.count("SELECT count(*) FROM device") == 0)
        #expect(try shop.rig.count("SELECT count(*) FROM attestation") == 0)
        #expect(
            shop.rig.registry.number(#"twoefay_attestations_total{outcome="refused"}"#) == Double(wrongs.count))
        // Each fault is audited once for an activation.
        #expect(
            try shop.rig.count("SELECT count(*) FROM audit WHERE event = 'attestation.refused'")
                == Int64(Set(wrongs.map(\.fault)).count))
        // The code was not used up.
        #expect(try await shop.stored(try await shop.bound(.android, nil, phone))?.verdict == .valid)
    }

    @Test(arguments: StoreKind.all) func recordedAttestationKeepsNobodyOut(kind: StoreKind) async throws {
        let shop = try await AttestedShop(
            kind, ["attestation-ios": "recorded", "attestation-android": "recorded", "devices": "50"])
        let first = try TestPhone(pushToken: "push")
        for wrong in try await Self.wrongs(shop, first) {
            let bind = try await shop.bind(first, wrong.attestation)
            let device = try #require(bind.bound?.device, "\(wrong.name): \(bind)")
            let row = try #require(try await shop.stored((first, try await shop.ada.credential(first, device))))
            #expect(row.faults == [wrong.fault.rawValue], "\(wrong.name)")
            #expect(row.verdict == (wrong.isGenuine ? .flawed : wrong.fault == .missing ? .missing : .invalid))
            // An attestation that proves nothing is not kept.
            #expect((row.facts != nil) == wrong.isGenuine && (row.statement != nil) == wrong.isGenuine)
            try shop.rig.execute("UPDATE activation SET used_at = NULL")
            // Its certificates count against a limit.
            try shop.rig.execute("DELETE FROM certificate")
            try shop.rig.execute("DELETE FROM device")
            try shop.rig.execute("DELETE FROM attestation")
            try shop.rig.execute("DELETE FROM operation_secret")
            try shop.rig.execute("DELETE FROM audit")
            try shop.rig.execute("UPDATE user SET proved_at = NULL")
        }
    }

    @Test func nothingIsRecordedUnlessAWebsiteAsks() async throws {
        let shop = try await AttestedShop(.memory)
        let bound = try await shop.bound(.android)
        #expect(try await shop.stored(bound) == nil)
        #expect(try await shop.answer(by: bound) == .success(.success))
        let outcomes = ["valid", "flawed", "invalid", "missing", "refused"]
        for outcome in outcomes {
            #expect(shop.rig.registry.number(#"twoefay_attestations_total{outcome="\#(outcome)"}"#) == 0)
        }
    }

    /// The weaker platform is only for phones that prove it.
    @Test func unprovenPlatformIsUnderTheStricterPolicy() async throws {
        let shop = try await AttestedShop(.memory, ["attestation-ios": "required"])
        for named in Domain.Platform.allCases {
            let bind = try await shop.bind(try TestPhone(pushToken: "p"), nil, platform: named)
            #expect(bind == .failure(.notAttested(.missing)))
        }
        // A phone that proves it is bound, and can approve.
        let android = try await shop.bound(.android)
        #expect(try await shop.stored(android)?.verdict == .valid)
        #expect(try await shop.answer(by: android) == .success(.success))
    }

    @Test func revokedAndStaleListsKeepAndroidOut() async throws {
        let shop = try await AttestedShop(.memory, ["attestation-ios": "recorded", "attestation-android": "required"])
        let phone = try TestPhone(pushToken: "push")
        let attestation = try shop.attestation(.android, of: phone)
        try shop.trust(revoked: ["def"])
        #expect(try await shop.bind(phone, attestation) == .failure(.notAttested(.revoked)))
        try shop.trust(listAge: nil)
        #expect(try await shop.bind(phone, attestation) == .failure(.notAttested(.revocationListMissing)))
        try shop.trust(listAge: .seconds(7 * 86_400 + 1))
        #expect(try await shop.bind(phone, attestation) == .failure(.notAttested(.revocationListStale)))
        try shop.trust(listAge: .seconds(7 * 86_400))
        #expect(try await shop.bind(phone, attestation).bound != nil)
    }

    /// A phone that is bound again has the attestation of its last binding.
    @Test(arguments: StoreKind.all) func newBindingReplacesTheAttestation(kind: StoreKind) async throws {
        let shop = try await AttestedShop(kind, ["attestation-ios": "recorded", "attestation-android": "recorded"])
        let first = try await shop.bound(.android)
        let before = try #require(try await shop.stored(first))
        let code = try await shop.ada.furtherCode()
        let again = try await shop.bound(.ios, code: code, nil, first.phone)
        #expect(again.credential.id == first.credential.id)
        let after = try #require(try await shop.stored(again))
        #expect(before.facts != after.facts && after.verdict == .valid && after.activationCode == code)
        let last = try await shop.ada.furtherCode()
        _ = try await shop.bound(nil, code: last, nil, first.phone)
        #expect(try await shop.stored(again)?.verdict == .missing)
        #expect(try await shop.rig.notGenuine() == [])
        #expect(try shop.rig.count("SELECT count(*) FROM attestation") == 1)
    }

    @Test(arguments: StoreKind.all) func attestationIsDeletedWithItsUser(kind: StoreKind) async throws {
        let shop = try await AttestedShop(kind, ["attestation-ios": "recorded"])
        _ = try await shop.bound(.ios)
        #expect(try shop.rig.count("SELECT count(*) FROM attestation") == 1)
        try await shop.rig.on { relay in try await relay.forget(username: "ada", by: shop.website) }
        #expect(try shop.rig.count("SELECT count(*) FROM attestation") == 0)
    }

    /// Nobody can plant a verdict by SQL, or move one to another phone.
    @Test(arguments: StoreKind.all) func forgedAttestationStopsTheApproval(kind: StoreKind) async throws {
        let shop = try await AttestedShop(
            kind, ["attestation-ios": "required", "attestation-android": "required", "devices": "9"])
        let bound = try await shop.bound(.android)
        let second = try await shop.bound(.android, code: try await shop.ada.furtherCode())
        let row = try #require(try await shop.stored(bound))
        let (facts, statement) = (try #require(row.facts), try #require(row.statement))
        let binding = try #require(row.binding)
        let changes = [
            ("verdict = 'flawed'", "verdict = 'valid'"), ("counter = counter + 1", "counter = counter - 1"),
            ("facts = '{\"platform\":\"android\"}'", "facts = '\(facts)'"),
            ("statement = NULL", "statement = '\(statement)'"), ("faults = 'root'", "faults = ''"),
            ("app_key = x'04'", "app_key = NULL"), ("operation = device_id", "operation = x'\(binding.text)'"),
        ]
        let isFirst = "WHERE device_id = x'\(bound.credential.id.text)'"
        for (change, undo) in changes {
            try shop.rig.forge("UPDATE attestation SET \(change) \(isFirst)")
            #expect(try await shop.answer(by: bound) == .failure(.broken), "\(change)")
            try shop.rig.forge("UPDATE attestation SET \(undo) \(isFirst)")
            #expect(try await shop.answer(by: bound) == .success(.success), "\(undo)")
        }
        let (first, other) = (bound.credential.id.text, second.credential.id.text)
        try shop.rig.forge("DELETE FROM attestation WHERE device_id = x'\(first)'")
        #expect(try await shop.answer(by: bound) == .failure(.postureUnmet([.attestation])))
        try shop.rig.forge("UPDATE attestation SET device_id = x'\(first)' WHERE device_id = x'\(other)'")
        #expect(try await shop.answer(by: bound) == .failure(.broken))
    }
}
