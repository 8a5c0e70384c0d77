import Bytes
import Crypto
import Domain
import HTTP
import JSON
import Relay
import Storage
import TestSupport
import Testing
import World

@testable import API

/// The life of a key that signs documents: its one purpose, its replacement, and its limits.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct DocumentKeyTests {
    /// A key that has ever signed for one purpose gets no other one, whatever became of the row.
    @Test(arguments: StoreKind.all) func keyNeverChangesItsPurpose(kind: StoreKind) async throws {
        let signer = try await Signer(kind)
        let other = try await Signer(beside: signer, user: "eve")
        let first = try P256PrivateKey.generate()
        #expect(try await signer.certify("legacy", key: first).status == 200)
        signer.rig.relay.time.advance(by: .seconds(7))
        #expect(try await signer.certify("legacy", key: try P256PrivateKey.generate()).status == 200)
        // The row of the first key is gone; its bare signatures are not.
        for answer in [
            try await signer.certify("sign", key: first), try await other.certify("legacy", key: first),
            try await other.certify(key: signer.phone.agreement),
        ] {
            #expect(answer.status == 409 && answer.faults == ["csr taken"], "\(answer.text)")
        }
        #expect(await signer.shop.send("DELETE", "/user/bob").status == 204)
        #expect(try await other.certify("sign", key: first).status == 409)
        #expect(try await other.certify("sign").status == 200)
    }

    /// The key of a certificate cannot be enrolled afterwards, nor named for secrets.
    @Test(arguments: StoreKind.all) func documentKeyIsNeverEnrolled(kind: StoreKind) async throws {
        let signer = try await Signer(kind)
        #expect(try await signer.certify("legacy").status == 200)
        let agreement = try P256PrivateKey.generate()
        let user = try await signer.shop.register("eve")
        let phones = [
            try TestPhone(pushToken: "eve", key: signer.key, agreement: agreement),
            try TestPhone(pushToken: "eve", agreement: signer.key),
            try TestPhone(pushToken: "eve", agreement: signer.phone.key),
            try TestPhone(pushToken: "eve", key: signer.phone.agreement, agreement: agreement),
        ]
        for (index, phone) in phones.enumerated() {
            let refused = try await signer.shop.verify(phone, token: user.token, code: user.code)
            #expect(refused.status == 401, "\(index): \(refused.text)")
        }
        #expect(try signer.rig.relay.count("SELECT count(*) FROM device") == 1)
        signer.rig.relay.time.advance(by: .seconds(60))
        let honest = try TestPhone(pushToken: "eve", agreement: agreement)
        #expect(try await signer.shop.verify(honest, token: user.token, code: user.code).status == 200)
    }

    /// A request that is sent again, also to another relay, has the same answer, and never brings back a key that was
    /// replaced since.
    @Test(arguments: [StoreKind.file, .mariadb]) func repeatedRequestChangesNothing(kind: StoreKind) async throws {
        let signer = try await Signer(kind)
        var body: JSONObject = [:]
        let first = try await signer.certify(body: { body = $0 })
        let other = Site(rig: try await APIRig(beside: signer.rig), certificate: signer.site.certificate)
        for site in [signer.site, other] {
            let again = await site.send("POST", "/device/certificate", body)
            #expect(again.status == 200 && again["serial"] == first["serial"], "\(again.text)")
        }
        #expect(try signer.rig.relay.count("SELECT count(*) FROM certificate WHERE tag = 'sign'") == 1)
        signer.rig.relay.time.advance(by: .seconds(7))
        let key = try P256PrivateKey.generate()
        #expect(try await signer.certify(key: key).status == 200)
        for site in [signer.site, other] {
            let old = await site.send("POST", "/device/certificate", body)
            #expect(old.status == 409 && old.faults == ["proof mismatch"], "\(old.text)")
        }
        // A request with another key in the same second is not later, and is refused too.
        #expect(try await signer.certify(key: try P256PrivateKey.generate()).faults == ["proof mismatch"])
        #expect(await signer.verify(try signer.statement(key: key))["valid"] == true)
    }

    /// A new key is announced like a new phone, a renewal is not.
    @Test(arguments: StoreKind.all) func newKeyIsAnnounced(kind: StoreKind) async throws {
        let signer = try await Signer(kind)
        try signer.rig.relay.execute("UPDATE user SET email = 'bob@example.com'")
        try signer.rig.relay.execute("UPDATE website SET webhook_url = 'https://shop.example/hook'")
        func announced(_ kind: String) throws -> Int64 {
            try signer.rig.relay.count(
                "SELECT count(*) FROM outbox WHERE kind = '\(kind)' AND event = 'device.certified'")
        }
        for (key, count) in [(signer.key, 1), (signer.key, 1), (try P256PrivateKey.generate(), 2)] {
            #expect(try await signer.certify(key: key).status == 200)
            #expect(try announced("mail") == count && announced("webhook") == count)
            signer.rig.relay.time.advance(by: .seconds(7))
        }
    }

    /// The MAC of a row that is put back is right, so the audit has to show it.
    @Test(arguments: StoreKind.all) func restoredCertificateIsOlderThanTheAudit(kind: StoreKind) async throws {
        let signer = try await Signer(kind)
        let store = signer.rig.relay.store
        func outdated() async throws -> [OutdatedRow] {
            try await signer.rig.relay.on { _ in try await store.run(OutdatedRow.all) }
        }
        let first = signer.rig.relay.time.now()
        #expect(try await signer.certify().status == 200)
        #expect(try await signer.certify("legacy", key: try P256PrivateKey.generate()).status == 200)
        signer.rig.relay.time.advance(by: .seconds(7))
        #expect(try await signer.certify(key: try P256PrivateKey.generate()).status == 200)
        #expect(try await outdated().isEmpty)
        try signer.rig.relay.forge(
            "UPDATE tagged_certificate SET created_at = (SELECT min(at) FROM audit WHERE event = 'device.certified')")
        let found = try await outdated()
        #expect(found.map(\.table) == ["tagged_certificate"] && found.map(\.writtenAt) == [first])
        #expect(found.first?.key == (try #require(DeviceID(signer.device))).bytes)
    }

    /// A whole row that somebody kept and puts back has a right MAC. It counts as soon as its serial
    /// number, which no MAC covers, is not revoked either. The audit shows it.
    @Test(arguments: StoreKind.all) func keptRowCountsAndIsFoundByTheAudit(kind: StoreKind) async throws {
        let signer = try await Signer(kind)
        let rig = signer.rig.relay
        #expect(try await signer.certify().status == 200)
        try rig.execute("CREATE TABLE kept_row AS SELECT * FROM tagged_certificate")
        defer { #expect(throws: Never.self) { try rig.execute("DROP TABLE kept_row") } }
        rig.time.advance(by: .seconds(7))
        #expect(try await signer.certify(key: try P256PrivateKey.generate()).status == 200)
        let statement = try signer.statement()
        #expect(await signer.verify(statement)["valid"] == false)
        try rig.forge("DELETE FROM tagged_certificate")
        try rig.forge("INSERT INTO tagged_certificate SELECT * FROM kept_row")
        #expect(await signer.verify(statement)["fault"] == "certificate")
        try rig.forge("UPDATE certificate SET revoked_at = NULL")
        #expect(await signer.verify(statement)["valid"] == true)
        let store = rig.store
        let found = try await rig.on { _ in try await store.run(OutdatedRow.all) }
        #expect(found.map(\.table) == ["tagged_certificate"])
    }

    /// A key that one relay certifies, while another one binds a phone with it, gets one purpose.
    @Test(arguments: [StoreKind.file, .mariadb]) func keyGetsOnePurposeAtTwoRelays(kind: StoreKind) async throws {
        let signer = try await Signer(kind)
        let other = Site(rig: try await APIRig(beside: signer.rig), certificate: signer.shop.certificate)
        for round in 1...6 {
            let holder = try await Signer(beside: signer, user: "holder-\(round)")
            let user = try await signer.shop.register("eve-\(round)")
            let key = try P256PrivateKey.generate()
            let phone = try TestPhone(pushToken: "eve", key: key, agreement: try P256PrivateKey.generate())
            async let certified = holder.certify("legacy", key: key)
            async let bound = other.verify(phone, token: user.token, code: user.code, from: "192.0.2.\(round)")
            let statuses = [try await certified.status, try await bound.status]
            #expect(statuses.count { $0 == 200 } == 1, "\(statuses)")
            let thumbprint = Hex.encode(key.publicKey.spkiThumbprint)
            let purposes = try ["device", "tagged_certificate"].map {
                try signer.rig.relay.count("SELECT count(*) FROM \($0) WHERE thumbprint = x'\(thumbprint)'")
            }
            #expect(purposes.reduce(0, +) == 1, "\(purposes)")
        }
    }

    /// Replacing a key revokes all of its certificates, not only the newest one.
    @Test(arguments: StoreKind.all) func newKeyRevokesAllCertificatesOfTheOldOne(kind: StoreKind) async throws {
        let signer = try await Signer(kind)
        #expect(try await signer.certify().status == 200)
        signer.rig.relay.time.advance(by: .seconds(86_400 * 60))
        #expect(try await signer.certify().status == 200)
        signer.rig.relay.time.advance(by: .seconds(86_400))
        #expect(try await signer.certify("legacy", key: try P256PrivateKey.generate()).status == 200)
        #expect(try await signer.certify(key: try P256PrivateKey.generate()).status == 200)
        #expect(try signer.revoked() == 2)
    }

    /// A phone cannot fill the revocation list with replaced keys.
    @Test(arguments: StoreKind.all) func phoneHasFewCertificatesOfOneTag(kind: StoreKind) async throws {
        let signer = try await Signer(kind)
        for number in 1...6 {
            let answer = try await signer.certify(key: try P256PrivateKey.generate())
            #expect(answer.status == (number <= 4 ? 200 : 429), "\(number): \(answer.text)")
            signer.rig.relay.time.advance(by: .seconds(7))
        }
        #expect(try signer.rig.relay.count("SELECT count(*) FROM certificate WHERE tag = 'sign'") == 4)
        // The authority signs nothing that the relay discards: four, and that of the phone itself.
        #expect(signer.rig.relay.registry.number(#"twoefay_phone_certificates_total{outcome="issued"}"#) == 5)
        // Another tag has room of its own, and the first one has again when the oldest has expired.
        #expect(try await signer.certify("legacy").status == 200)
        signer.rig.relay.time.advance(by: .seconds(86_400 * 90))
        #expect(try await signer.certify(key: try P256PrivateKey.generate()).status == 200)
    }

    /// However many tags a phone has, it can renew the certificate that authenticates it.
    @Test(arguments: StoreKind.all) func tagsLeaveRoomForThePhoneItself(kind: StoreKind) async throws {
        let tags = (1...8).map { "tag-\($0)" }
        let signer = try await Signer(kind, tags: tags.joined(separator: ", "))
        for tag in tags {
            #expect(try await signer.certify(tag, key: try P256PrivateKey.generate()).status == 200)
        }
        let renewed = await signer.site.send("POST", "/device", ["certificate": true])
        #expect(renewed.status == 200 && renewed["certificate"]?.string != nil, "\(renewed.text)")
    }
}
