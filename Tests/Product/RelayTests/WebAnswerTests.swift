import Attestation
import Bytes
import Domain
import JSON
import Relay
import Storage
import TestSupport
import Testing

@testable import Crypto

/// A page of the tests that is a phone, with an authenticator of WebAuthn. It is made from the
/// protocol, and not from the relay's code.
private struct Page: Sendable {
    let app: String
    let rp: String
    let credential: P256PrivateKey
    let id = Base64URL.encode([UInt8](repeating: 7, count: 32))

    init(app: String = "https://phone.example.com", rp: String = "phone.example.com") throws {
        self.app = app
        self.rp = rp
        credential = try P256PrivateKey.generate()
    }

    var passkey: JSONObject {
        ["rp": .string(rp), "id": .string(id), "jwk": .object(credential.publicKey.jwk)]
    }

    func claim(_ claims: inout JSONObject) {
        claims.set("app", .string(app))
        claims.set("webauthn", .object(passkey))
    }

    /// Returns what an authenticator signs for the decision, with its flags and client data changed.
    func assertion(
        over signed: String, flags: UInt8 = 0b101, rp: String? = nil, change: (inout JSONObject) -> Void = { _ in }
    ) throws -> OwnerAssertion {
        let end = try #require(signed.lastIndex(of: "."))
        let challenge = SHA256.hash(Array(signed[..<end].utf8))
        var client: JSONObject = [
            "type": "webauthn.get", "challenge": .string(Base64URL.encode(challenge)), "origin": .string(app),
            "crossOrigin": false,
        ]
        change(&client)
        let data = SHA256.hash(Array((rp ?? self.rp).utf8)) + [flags, 0, 0, 0, 0]
        let bytes = JSONWriter.write(.object(client))
        let raw = try credential.sign(data + SHA256.hash(bytes))
        return OwnerAssertion(
            authenticatorData: data, clientData: bytes, signature: try #require(ECDSASignature.der(fromRaw: raw)))
    }
}

/// Approvals by phones that are pages in a browser.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct WebAnswerTests {
    typealias Outcome = Result<ChallengeLife.Result, Refusal>

    private func bound(
        _ shop: AttestedShop, _ page: Page?, platform: Platform = .web
    ) async throws -> RelayRig.BoundPhone {
        let phone = try TestPhone(pushToken: "")
        let bind = try await shop.bind(phone, nil, platform: platform) { page?.claim(&$0) }
        guard let bound = bind.bound else { throw RigFailure("not bound: \(bind)") }
        return (phone, try await shop.ada.credential(phone, bound.device))
    }

    private func answer(
        _ shop: AttestedShop, _ bound: RelayRig.BoundPhone, _ challenge: ChallengeID, number: String? = nil,
        uv: UserVerification = .passcode, age: JSONValue? = nil,
        assert: (String) throws -> OwnerAssertion? = { _ in nil }
    ) async throws -> Outcome {
        let signed = try bound.phone.decision(
            "approve", about: try await shop.rig.shown(challenge, to: bound.credential),
            device: bound.credential.id.text, origin: RelayRig.origin, number: number, uv: uv.rawValue,
            at: shop.rig.time.now()
        ) { $0.set("uv_age", age) }
        var answer = PhoneAnswer(approves: true, signed: signed)
        answer.ownerAssertion = try assert(signed).map { .object($0.json) }
        return try await PINShop.outcome { [answer] in try await shop.rig.post(answer, challenge, by: bound) }
    }

    private func isForbidden(_ outcome: Outcome) -> Bool {
        if case .failure(.forbidden) = outcome { true } else { false }
    }

    /// The website gets the page's origin, and everything to verify the owner's check itself.
    @Test(arguments: StoreKind.all) func ownerOfAPageIsVerified(kind: StoreKind) async throws {
        let shop = try await AttestedShop(kind, ["min-uv": "passcode", "max-uv-age": "60"])
        let page = try Page()
        let bound = try await bound(shop, page)
        let challenge = try await shop.ada.login().challenge
        #expect(isForbidden(try await answer(shop, bound, challenge, age: 0)))
        var made: OwnerAssertion?
        let outcome = try await answer(shop, bound, challenge, uv: .biometric, age: 0) { signed in
            made = try page.assertion(over: signed)
            return made
        }
        #expect(outcome == .success(.success))
        let reported = try await shop.ada.reported(challenge)
        // An authenticator does not say which check it made.
        #expect(reported.verified?.uv == .passcode && reported.assurance == .high)
        let json = reported.json()
        #expect(json["app"] == "https://phone.example.com" && json["uv"] == "passcode")
        let told = try #require(json["webauthn"].flatMap { OwnerAssertion(json: $0) })
        #expect(told == made && json["attestation"] == nil)
        let receipt = try #require(reported.receipt)
        let shown = try #require(try await shop.ada.devices().first)
        let pages = try await shop.rig.on { relay in
            try await relay.webPhones([shown], of: try await relay.user(named: "ada", of: shop.website).id)
        }
        let web = try #require(pages[bound.credential.id]).claims
        #expect(web.app == page.app && web.passkey?.json == page.passkey)
        try told.verify(over: receipt, by: try #require(web.passkey), of: web.app)
        #expect(try await shop.rig.notGenuine() == [])
    }

    /// Each wrong assertion is worth nothing, and the right one is accepted afterwards.
    @Test(arguments: StoreKind.all) func wrongAssertionsCountAsNone(kind: StoreKind) async throws {
        let shop = try await AttestedShop(kind, ["min-uv": "passcode"])
        let (page, other) = (try Page(), try Page())
        let bound = try await bound(shop, page)
        var first: OwnerAssertion?
        #expect(
            try await answer(shop, bound, try await shop.ada.login().challenge) { signed in
                first = try page.assertion(over: signed)
                return first
            } == .success(.success))
        let replayed = try #require(first)
        let wrongs: [(name: String, assert: (String) throws -> OwnerAssertion?)] = [
            ("none", { _ in nil }),
            ("of another decision", { _ in replayed }),
            ("by another credential", { try other.assertion(over: $0) }),
            ("of another origin", { try page.assertion(over: $0) { $0["origin"] = "https://evil.example.com" } }),
            ("of another port", { try page.assertion(over: $0) { $0["origin"] = "https://phone.example.com:444" } }),
            ("of another domain", { try page.assertion(over: $0, rp: "example.com") }),
            ("of a registration", { try page.assertion(over: $0) { $0["type"] = "webauthn.create" } }),
            ("in a frame", { try page.assertion(over: $0) { $0["crossOrigin"] = true } }),
            ("below another page", { try page.assertion(over: $0) { $0["topOrigin"] = "https://evil.example.com" } }),
            ("without the user", { try page.assertion(over: $0, flags: 0b100) }),
            ("without verification", { try page.assertion(over: $0, flags: 0b001) }),
            ("over the whole answer", { try page.assertion(over: "\($0).x") }),
        ]
        let challenge = try await shop.ada.login().challenge
        for wrong in wrongs {
            #expect(isForbidden(try await answer(shop, bound, challenge, assert: wrong.assert)), "\(wrong.name)")
        }
        #expect(try await answer(shop, bound, challenge) { try page.assertion(over: $0) } == .success(.success))
    }

    /// A login that needs no verification is approved without one, and has none.
    @Test func wordOfAPageAloneIsNoVerification() async throws {
        for page in [nil, try Page()] {
            let shop = try await AttestedShop(.memory)
            let bound = try await bound(shop, page)
            let challenge = try await shop.ada.login().challenge
            #expect(try await answer(shop, bound, challenge, uv: .biometric) == .success(.success))
            let reported = try await shop.ada.reported(challenge)
            #expect(reported.assurance == .substantial && reported.json()["webauthn"] == nil)
            #expect(reported.json()["app"]?.string == page?.app)
            #expect(try shop.rig.text("SELECT uv AS value FROM challenge") == "none")
        }
    }

    /// A text that is no assertion is one that proves nothing: the answer itself counts.
    @Test func malformedAssertionsCountAsNone() async throws {
        let shop = try await AttestedShop(.memory)
        let bound = try await bound(shop, try Page())
        for (word, json) in [("deny", "x"), ("approve", ["signature": 7]), ("fraud", [])] as [(String, JSONValue)] {
            let challenge = try await shop.ada.login().challenge
            let signed = try bound.phone.decision(
                word, about: try await shop.rig.shown(challenge, to: bound.credential),
                device: bound.credential.id.text, origin: RelayRig.origin, uv: "passcode", at: shop.rig.time.now())
            let answer = PhoneAnswer(approves: word == "approve", signed: signed, ownerAssertion: json)
            let outcome = try await PINShop.outcome { try await shop.rig.post(answer, challenge, by: bound) }
            #expect(outcome == .success(word == "approve" ? .success : .failure), "\(word)")
        }
        #expect(try shop.rig.text("SELECT uv AS value FROM challenge WHERE decision = 'approve'") == "none")
    }

    /// A script in the page has the phone's key. With another activation code it gets neither another
    /// credential nor another kind of phone.
    @Test(arguments: StoreKind.all) func pageKeepsItsCredential(kind: StoreKind) async throws {
        let shop = try await AttestedShop(kind)
        let (page, other) = (try Page(), try Page())
        let bound = try await bound(shop, page)
        let code = try await shop.ada.furtherCode()
        func again(_ platform: Platform, _ page: Page?) async throws -> Bind {
            try await shop.bind(bound.phone, nil, code: code, platform: platform) { page?.claim(&$0) }
        }
        for (platform, page) in [(Platform.other, nil), (.android, nil), (.web, nil), (.web, other)]
            as [(Platform, Page?)]
        {
            guard case .conflict? = try await again(platform, page).refusal else {
                Issue.record("\(platform) was not refused")
                continue
            }
        }
        // The code is not used up, and the same page may be bound again.
        #expect(try await again(.web, page).bound?.device == bound.credential.id)
        let challenge = try await shop.ada.login().challenge
        #expect(try await answer(shop, bound, challenge) { try page.assertion(over: $0) } == .success(.success))
        #expect(try await shop.ada.reported(challenge).json()["webauthn"] != nil)
        // Nor does a native phone become a page, or a page get a credential later.
        for (platform, page) in [(Platform.ios, nil), (.web, nil)] as [(Platform, Page?)] {
            let shop = try await AttestedShop(kind)
            let native = try await self.bound(shop, page, platform: platform)
            let code = try await shop.ada.furtherCode()
            let bind = try await shop.bind(native.phone, nil, code: code, platform: .web) { other.claim(&$0) }
            guard case .conflict? = bind.refusal else {
                Issue.record("\(platform) has become another page")
                continue
            }
        }
    }

    /// A page of the relay's own host can be another one for each visitor.
    @Test func pageOfTheRelayNeverHasHighAssurance() async throws {
        let shop = try await AttestedShop(.memory)
        let host = try #require(WebPhone.host(of: RelayRig.origin))
        let page = try Page(app: "https://\(host):8444", rp: host)
        let bound = try await bound(shop, page)
        let challenge = try await shop.ada.login().challenge
        #expect(try await answer(shop, bound, challenge) { try page.assertion(over: $0) } == .success(.success))
        #expect(try await shop.ada.reported(challenge).assurance == .substantial)
        let strict = try await shop.changed(["min-assurance": "high", "number": "2"])
        let asked = try await strict.ada.login()
        let outcome = try await answer(strict, bound, asked.challenge, number: asked.number) {
            try page.assertion(over: $0)
        }
        #expect(isForbidden(outcome))
        // Nor has it once the relay has another name.
        try strict.rig.execute("UPDATE web_phone SET app = 'https://former.example.com'")
        #expect(
            isForbidden(
                try await answer(strict, bound, asked.challenge, number: asked.number) {
                    try page.assertion(over: $0) { $0["origin"] = "https://former.example.com" }
                }))
    }

    /// A page that has named its origin, which is none of the relay's, can have it.
    @Test func pageOfAnotherHostCanHaveHighAssurance() async throws {
        let high = ["min-assurance": "high", "number": "2"]
        for (page, isHigh) in [(try Page(), true), (nil, false)] as [(Page?, Bool)] {
            let shop = try await AttestedShop(.memory, high)
            let bound = try await bound(shop, page)
            let asked = try await shop.ada.login()
            let outcome = try await answer(shop, bound, asked.challenge, number: asked.number)
            #expect(isHigh ? outcome == .success(.success) : isForbidden(outcome))
            guard isHigh else { continue }
            #expect(try await shop.ada.reported(asked.challenge).assurance == .high)
        }
    }

    /// Claims in a wrong form, or of a phone that does not call itself a page, bind nothing.
    @Test func malformedClaimsBindNothing() async throws {
        let shop = try await AttestedShop(.memory)
        let page = try Page()
        func refused(_ change: @escaping (inout JSONObject) -> Void, _ platform: Platform = .web) async throws -> Bool {
            let phone = try TestPhone(pushToken: "")
            return try await shop.bind(phone, nil, platform: platform, claims: change).refusal == .unauthenticated
        }
        let origins = [
            "http://phone.example.com", "https://phone.example.com/", "https://Phone.example.com",
            "https://a@phone.example.com", "https://phone.example.com:", "https://phone.example.com:123456",
            "https://", "", "https://phone.example.com#x", "https://\(String(repeating: "a", count: 121)).example",
        ]
        for origin in origins {
            #expect(try await refused { $0["app"] = .string(origin) }, "\(origin)")
        }
        #expect(try await refused { $0["app"] = 7 })
        #expect(try await refused { $0["webauthn"] = .object(page.passkey) })
        #expect(try await refused({ page.claim(&$0) }, .android))
        let changes: [(String, JSONValue?)] = [
            ("rp", "example.org"), ("rp", "ample.com"), ("rp", ""), ("rp", nil), ("id", ""), ("id", "="),
            ("id", .string(String(repeating: "A", count: 260))), ("id", nil), ("jwk", nil), ("jwk", "x"),
        ]
        for (name, value) in changes {
            var passkey = page.passkey
            passkey.set(name, value)
            let isRefused = try await refused { [passkey] claims in
                page.claim(&claims)
                claims["webauthn"] = .object(passkey)
            }
            #expect(isRefused, "\(name): \(String(describing: value))")
        }
        // A parent domain is a domain of the page, too.
        let parent = try Page(rp: "example.com")
        let bound = try await bound(shop, parent)
        let challenge = try await shop.ada.login().challenge
        #expect(try await answer(shop, bound, challenge) { try parent.assertion(over: $0) } == .success(.success))
    }

    /// The claims end with the phone, and a forged row of them gives no verification.
    @Test(arguments: StoreKind.all) func claimsAreSignedAndEndWithThePhone(kind: StoreKind) async throws {
        let shop = try await AttestedShop(kind, ["min-uv": "passcode"])
        let (page, other) = (try Page(), try Page())
        let bound = try await bound(shop, page)
        let challenge = try await shop.ada.login().challenge
        let forged = Hex.encode(other.credential.publicKey.x963)
        try shop.rig.forge("UPDATE web_phone SET public_key = x'\(forged)'")
        let outcome = try await answer(shop, bound, challenge) { try other.assertion(over: $0) }
        #expect(outcome == .failure(.broken))
        try shop.rig.execute("DELETE FROM web_phone")
        #expect(isForbidden(try await answer(shop, bound, challenge) { try page.assertion(over: $0) }))
        let again = try await AttestedShop(kind)
        let second = try await self.bound(again, page)
        #expect(try again.rig.count("SELECT count(*) FROM web_phone") == 1)
        try await again.rig.on { relay in
            try await relay.unbind(second.credential.id, ofUser: "ada", by: again.website)
        }
        #expect(try again.rig.count("SELECT count(*) FROM web_phone") == 0)
    }
}
