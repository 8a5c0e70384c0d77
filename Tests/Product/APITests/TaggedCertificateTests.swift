import Bytes
import Crypto
import Domain
import HTTP
import JSON
import Relay
import TestSupport
import Testing
import World

@testable import API

/// `POST /device/certificate` and `POST /verify-signature`: keys that sign documents.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct TaggedCertificateTests {
    @Test(arguments: StoreKind.all) func certifiedKeySignsADocument(kind: StoreKind) async throws {
        let signer = try await Signer(kind)
        let issued = try await signer.certify()
        #expect(issued.status == 200 && issued["tag"] == "sign" && issued["raw"] == false, "\(issued.text)")
        let pem = try #require(issued["certificate"]?.string)
        let certificate = try Certificate(pem: Array(pem.utf8))
        #expect(certificate.spkiThumbprint == signer.key.publicKey.spkiThumbprint)
        #expect(certificate.uris == ["twoefay:signer:\(signer.device):sign"])
        // The one extended usage is the signing of documents (RFC 9336), so TLS does not accept it.
        #expect(try certificate.extensions("2.5.29.37") == [[0x30, 0x0a, 0x06, 0x08, 0x2b, 6, 1, 5, 5, 7, 3, 36]])
        #expect(issued["serial"] == .string(certificate.serial))
        #expect(issued["expires_at"] == .string(certificate.notAfter.rfc3339))

        let answer = await signer.verify(try signer.statement())
        #expect(answer.status == 200 && answer["valid"] == true, "\(answer.text)")
        #expect(answer["label"] == "Contract 7" && answer["username"] == "bob")
        #expect(answer["signed_at"] == .string(Timestamp(seconds: signer.rig.relay.time.now().seconds).rfc3339))
        #expect(answer["certificate"]?.object?["serial"] == issued["serial"])
        let device = try #require(await signer.shop.devices("bob").first)
        #expect(device["certificates"]?.array == [.object(issued.json)])
        #expect(
            try signer.rig.relay.count(
                "SELECT count(*) FROM audit WHERE event = 'device.certified' AND outcome = 'sign'") == 1)
    }

    /// The certificate of a document key opens no connection of the phone.
    @Test func documentKeyDoesNotAuthenticateThePhone() async throws {
        let signer = try await Signer()
        let issued = try await signer.certify()
        let certificate = ClientCertificate(
            authority: .phones, uris: ["twoefay:signer:\(signer.device):sign"],
            keyThumbprint: signer.key.publicKey.spkiThumbprint)
        #expect(issued.status == 200)
        let answer = await Site(rig: signer.rig, certificate: certificate).send("POST", "/pending", [:])
        #expect([401, 403].contains(answer.status), "\(answer.text)")
    }

    // MARK: Certificates

    @Test(arguments: StoreKind.all) func keyHasOnePurpose(kind: StoreKind) async throws {
        let signer = try await Signer(kind)
        let other = try await Signer(beside: signer, user: "eve")
        #expect(try await signer.certify().status == 200)
        signer.rig.relay.time.advance(by: .seconds(7))
        // The enrolment key of this phone or another one, the key for secrets, and a key with another tag or phone.
        let used = [
            try await signer.certify(key: signer.phone.key), try await signer.certify(key: other.phone.key),
            try await signer.certify(key: signer.phone.agreement), try await signer.certify("legacy"),
            try await other.certify(key: signer.key),
        ]
        for (index, answer) in used.enumerated() {
            #expect(answer.status == 409 && answer.faults == ["csr taken"], "\(index): \(answer.text)")
        }
        #expect(try signer.rig.relay.count("SELECT count(*) FROM tagged_certificate") == 1)
    }

    @Test func requestThatThePhoneDidNotSignIsRefused() async throws {
        let signer = try await Signer()
        let stranger = try P256PrivateKey.generate()
        let other = try SigningRequest(commonName: "any", key: stranger).pem()
        let wrong = [
            try await signer.certify(signing: stranger), try await signer.certify(signing: signer.key),
            try await signer.certify(change: { $0["aud"] = "https://relay.example#bank" }),
            try await signer.certify(change: { $0["tag"] = "legacy" }),
            try await signer.certify(change: { $0["v"] = 2 }), try await signer.certify(change: { $0["csr"] = "AAAA" }),
            // Somebody swaps the request, or the tag, on its way.
            try await signer.certify(body: { $0["csr"] = .string(String(decoding: other, as: UTF8.self)) }),
            try await signer.certify(body: { $0["tag"] = "legacy" }),
        ]
        for (index, answer) in wrong.enumerated() {
            #expect(answer.status == 400 && answer.faults == ["proof format"], "\(index): \(answer.text)")
        }
        signer.rig.relay.time.advance(by: .seconds(60))
        for seconds in [-301, 301] {
            let late = try await signer.certify(after: .seconds(seconds))
            #expect(late.status == 400 && late.faults == ["proof mismatch"], "\(late.text)")
        }
        #expect(try signer.rig.relay.count("SELECT count(*) FROM tagged_certificate") == 0)
    }

    @Test func tagMustBeInThePolicy() async throws {
        let signer = try await Signer(tags: "sign")
        let unknown = try await signer.certify("seal")
        #expect(unknown.status == 400 && unknown.faults == ["tag unknown"], "\(unknown.text)")
        #expect(try await signer.certify("Sign!").faults == ["tag format"])
        #expect(Policy().certificateTags.isEmpty)
    }

    @Test(arguments: [
        ("none", "none"), ("sign", "sign"), ("sign,legacy:raw", "sign, legacy:raw"), ("a-1 , b:raw ", "a-1, b:raw"),
    ])
    func tagsAreParsed(text: String, stored: String) throws {
        var policy = Policy()
        try policy.set("certificate-tags", to: text)
        #expect(policy.text(of: "certificate-tags") == stored)
    }

    @Test(arguments: [
        "", "Sign", "1st", "a,a", "a,a:raw", "a:b", "a b", ",", "a,,b", String(repeating: "a", count: 33),
    ])
    func wrongTagsAreRefused(text: String) {
        var policy = Policy()
        #expect(throws: Policy.Fault.self) { try policy.set("certificate-tags", to: text) }
    }

    /// A certificate for the same key renews the earlier one; one for another key revokes it.
    @Test(arguments: StoreKind.all) func laterCertificateReplacesTheEarlierOne(kind: StoreKind) async throws {
        let signer = try await Signer(kind)
        let first = try await signer.certify()
        signer.rig.relay.time.advance(by: .seconds(86_400 * 70))
        let renewed = try await signer.certify()
        #expect(renewed.status == 200 && renewed["serial"] != first["serial"])
        #expect(try signer.revoked() == 0)
        signer.rig.relay.time.advance(by: .seconds(86_400 * 30))
        #expect(await signer.verify(try signer.statement())["valid"] == true)
        let key = try P256PrivateKey.generate()
        let replaced = try await signer.certify(key: key)
        #expect(replaced.status == 200, "\(replaced.text)")
        #expect(try signer.revoked() == 2)
        #expect(await signer.verify(try signer.statement())["fault"] == "signature")
        #expect(await signer.verify(try signer.statement(key: key))["valid"] == true)
        // A suspension and its end do not bring the replaced one back.
        let path = "/user/bob/devices/\(signer.device)"
        for state in ["suspended", "active"] {
            #expect(await signer.shop.send("PATCH", path, ["state": .string(state)]).status == 200)
        }
        #expect(try signer.revoked() == 2)
    }

    @Test(arguments: StoreKind.all) func certificateEndsWithItsPhone(kind: StoreKind) async throws {
        let signer = try await Signer(kind)
        #expect(try await signer.certify().status == 200)
        let path = "/user/bob/devices/\(signer.device)"
        #expect(await signer.shop.send("PATCH", path, ["state": "suspended"]).status == 200)
        #expect(await signer.verify(try signer.statement()).status == 404)
        #expect(try await signer.certify().status == 401)
        #expect(await signer.shop.send("PATCH", path, ["state": "active"]).status == 200)
        #expect(await signer.verify(try signer.statement())["valid"] == true)
        #expect(await signer.shop.send("DELETE", path).status == 204)
        #expect(await signer.verify(try signer.statement()).status == 404)
        // Both the phone's own certificate and the tagged one are on the list.
        #expect(try signer.revoked() == 2)
        #expect(try signer.rig.relay.count("SELECT count(*) FROM tagged_certificate") == 0)
    }

    @Test(arguments: StoreKind.all) func certificateIsDeletedWithItsUser(kind: StoreKind) async throws {
        let signer = try await Signer(kind)
        #expect(try await signer.certify().status == 200)
        #expect(await signer.shop.send("DELETE", "/user/bob").status == 204)
        #expect(try signer.rig.relay.count("SELECT count(*) FROM tagged_certificate") == 0)
        #expect(try signer.revoked() == 2)
    }

    // MARK: Documents

    @Test func wrongStatementIsNoSignature() async throws {
        let signer = try await Signer()
        #expect(try await signer.certify().status == 200)
        let other = SHA256.hash(Array("Another contract.\n".utf8))
        let cases: [(String, String)] = [
            (try signer.statement(header: { $0["typ"] = "twoefay-decision+jwt" }), "statement"),
            (try signer.statement(header: { $0["kid"] = "d0b1f3a57c9e4d2f8a6b4c2e0d1f3a57" }), "statement"),
            (try signer.statement(claims: { $0["aud"] = .string("\(RelayRig.origin)#bank") }), "statement"),
            (try signer.statement(claims: { $0["v"] = 2 }), "statement"),
            (try signer.statement(claims: { $0["tag"] = "legacy" }), "statement"),
            (try signer.statement(claims: { $0["label"] = "a\u{202e}b" }), "statement"),
            (try signer.statement(claims: { $0["label"] = nil }), "statement"),
            (try signer.statement(claims: { $0["iat"] = "now" }), "statement"), ("a.b.c", "statement"),
            // Times that no clock shows: the first two overflow in milliseconds, the others have no RFC 3339 form.
            (try signer.statement(claims: { $0["iat"] = .integer(.max) }), "statement"),
            (try signer.statement(claims: { $0["iat"] = .integer(.min) }), "statement"),
            (try signer.statement(claims: { $0["iat"] = .integer(253_402_214_400) }), "statement"),
            (try signer.statement(claims: { $0["iat"] = .integer(-1) }), "statement"),
            (try signer.statement(key: try P256PrivateKey.generate()), "signature"),
            // The enrolment key signs no documents.
            (try signer.statement(key: signer.phone.key), "signature"), (try signer.statement(other), "digest"),
        ]
        for (index, (statement, fault)) in cases.enumerated() {
            let answer = await signer.verify(statement)
            #expect(answer["valid"] == false && answer["fault"] == .string(fault), "\(index): \(answer.text)")
            #expect(answer["label"] == nil)
        }
    }

    @Test(arguments: StoreKind.all) func expiredOrForgedCertificateDoesNotCount(kind: StoreKind) async throws {
        let signer = try await Signer(kind)
        #expect(try await signer.certify().status == 200)
        signer.rig.relay.time.advance(by: .seconds(86_400 * 91))
        #expect(await signer.verify(try signer.statement())["fault"] == "certificate")
        #expect(try await signer.certify().status == 200)
        let own = try P256PrivateKey.generate()
        let forged = try CertificateAuthority.create(
            commonName: "own", days: 10, at: signer.rig.relay.time.now()
        ).issueSigner(uri: "twoefay:signer:x:sign", key: own.publicKey, days: 10, at: signer.rig.relay.time.now())
        let pem = String(decoding: try forged.pem(), as: UTF8.self)
        try signer.rig.relay.forge("UPDATE tagged_certificate SET certificate = '\(pem)'")
        let answer = await signer.verify(try signer.statement(key: own))
        #expect(answer.status == 500, "\(answer.text)")
    }

    /// Whoever has the phone of a user who may not log in signs nothing.
    @Test(arguments: StoreKind.all) func barredUserSignsNothing(kind: StoreKind) async throws {
        let signer = try await Signer(kind)
        #expect(try await signer.certify().status == 200)
        signer.rig.relay.time.advance(by: .seconds(7))
        for change in [
            "state = 'locked'", "state = 'frozen'", "state = 'disabled'",
            "state = 'active', expires_at = '2000-01-01 00:00:00.000'",
        ] {
            try signer.rig.relay.execute("UPDATE user SET \(change)")
            let answer = await signer.verify(try signer.statement())
            #expect(answer["valid"] == false && answer["fault"] == "user", "\(change): \(answer.text)")
            #expect(try await signer.certify("legacy", key: try P256PrivateKey.generate()).status == 403, "\(change)")
        }
        try signer.rig.relay.execute("UPDATE user SET expires_at = NULL")
        #expect(await signer.verify(try signer.statement())["valid"] == true)
    }

    @Test func otherWebsiteFindsNoSigner() async throws {
        let signer = try await Signer()
        #expect(try await signer.certify().status == 200)
        let bank = try await signer.rig.site("bank", ["certificate-tags": "sign"])
        let statement = try signer.statement()
        #expect(await signer.verify(statement, by: bank).status == 404)
        #expect(await signer.verify(statement, tag: "legacy").status == 404)
        #expect(await signer.verify(statement, by: signer.site).status == 403)
    }

    // MARK: Bare hashes

    @Test(arguments: StoreKind.all) func bareHashCountsOnlyUnderARawTag(kind: StoreKind) async throws {
        let signer = try await Signer(kind)
        let rawKey = try P256PrivateKey.generate()
        #expect(try await signer.certify().status == 200)
        let issued = try await signer.certify("legacy", key: rawKey)
        #expect(issued["raw"] == true, "\(issued.text)")
        // Whoever checks a statement without the relay sees that this key makes none.
        let certificate = try Certificate(pem: Array(try #require(issued["certificate"]?.string).utf8))
        #expect(certificate.uris == ["twoefay:raw-signer:\(signer.device):legacy"])
        let signature = try rawKey.sign(digest: Signer.document)
        let valid = await signer.verify(raw: signature, tag: "legacy")
        #expect(valid["valid"] == true && valid["label"] == nil, "\(valid.text)")
        let wrong = await signer.verify(raw: try signer.key.sign(digest: Signer.document), tag: "legacy")
        #expect(wrong["valid"] == false && wrong["fault"] == "signature", "\(wrong.text)")
        // A key that signs statements signs no bare hash, and the other way round.
        let bare = await signer.verify(raw: try signer.key.sign(digest: Signer.document))
        #expect(bare.status == 403, "\(bare.text)")
        let said = await signer.verify(try signer.statement(tag: "legacy", key: rawKey), tag: "legacy")
        #expect(said.status == 403, "\(said.text)")
        #expect(await signer.verify(raw: [1, 2], tag: "legacy")["fault"] == "signature")
        #expect(await signer.verify(try signer.statement(), raw: signature).faults == ["signature mismatch"])
    }

    /// A tag that becomes raw later, or was raw before, makes nothing of the other kind valid.
    @Test(arguments: ["legacy", "legacy:raw"]) func changedTagNeedsAnotherCertificate(first: String) async throws {
        let signer = try await Signer(tags: first)
        #expect(try await signer.certify("legacy").status == 200)
        let second = first == "legacy" ? "legacy:raw" : "legacy"
        try signer.rig.relay.execute("UPDATE website SET policy = '{\"certificate-tags\":\"\(second)\"}'")
        for answer in [
            await signer.verify(try signer.statement(tag: "legacy"), tag: "legacy"),
            await signer.verify(raw: try signer.key.sign(digest: Signer.document), tag: "legacy"),
        ] {
            #expect(answer.status == 409 && answer.faults == ["tag state"], "\(answer.text)")
        }
        // The tag has changed between raw hashes and statements. If the same key could stay, its
        // earlier signatures would now count as the other kind.
        signer.rig.relay.time.advance(by: .seconds(7))
        let same = try await signer.certify("legacy")
        #expect(same.status == 409 && same.faults == ["csr taken"], "\(same.text)")
        let another = try await signer.certify("legacy", key: try P256PrivateKey.generate())
        #expect(another.status == 200 && another["raw"] == .bool(second == "legacy:raw"), "\(another.text)")
    }

    /// A website that lets a phone sign a hash, and so the signing input of a decision, gets no
    /// approval by that.
    @Test(arguments: StoreKind.all) func signedHashIsNeverADecision(kind: StoreKind) async throws {
        let signer = try await Signer(kind, tags: "legacy:raw")
        let rawKey = try P256PrivateKey.generate()
        #expect(try await signer.certify("legacy", key: rawKey).status == 200)
        let (challenge, number) = try await signer.shop.login("bob")
        let pending = await signer.site.send("POST", "/pending", [:])
        let entry = try #require(pending["pending"]?.array?.first?.object, "\(pending.text)")
        let shown = TestPhone.Shown(
            challenge: challenge, nonce: try #require(entry["nonce"]?.string),
            context: try #require(entry["context"]?.string.flatMap { Base64URL.decode($0) }))
        let honest = try signer.phone.decision(
            "approve", about: shown, device: signer.device, origin: RelayRig.origin, number: number,
            at: signer.rig.relay.time.now())
        let input = honest.split(separator: ".").dropLast().joined(separator: ".")
        // The raw key signs the digest of the signing input.
        let digest = SHA256.hash(Array(input.utf8))
        let signature = try rawKey.sign(digest: digest)
        #expect(await signer.verify(raw: signature, tag: "legacy", digest: digest)["valid"] == true)
        let forged = "\(input).\(Base64URL.encode(try Self.joined(signature)))"
        let object = try JWS.parse(forged, maxBytes: 8192)
        #expect(object.verify(rawKey.publicKey), "the signature itself is right")
        let body: JSONObject = ["challenge": .string(challenge), "answer": .string(forged)]
        let refused = await signer.site.send("POST", "/success", body)
        #expect(refused.status == 400, "\(refused.text)")
        #expect(await signer.shop.send("POST", "/auth", ["challenge": .string(challenge)])["login"] == "wait")
        #expect(try signer.rig.relay.count("SELECT count(*) FROM challenge WHERE receipt IS NOT NULL") == 0)
    }

    /// Converts a signature in DER to r and s, 32 bytes each.
    private static func joined(_ der: [UInt8]) throws -> [UInt8] {
        var raw: [UInt8] = []
        var rest = der.dropFirst(2)
        for _ in 0..<2 {
            let count = Int(try #require(rest.dropFirst().first))
            let number = rest.dropFirst(2).prefix(count).drop { $0 == 0 }
            raw += [UInt8](repeating: 0, count: 32 - number.count) + number
            rest = rest.dropFirst(2 + count)
        }
        return raw
    }
}
