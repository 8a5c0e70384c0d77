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

/// `POST /device/totp`: the secret of the codes that a phone shows itself.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct PhoneCodeTests {
    /// A phone of a user of the shop, with both of its keys.
    private struct Bound {
        let rig: APIRig
        let shop: Site
        let username: String
        let phone: TestPhone
        let device: String
        let site: Site

        init(
            _ kind: StoreKind = .memory, policy: String = "again", beside other: Bound? = nil,
            user: String = "bob", agrees: Bool = true
        ) async throws {
            username = user
            if let other {
                (rig, shop) = (other.rig, other.shop)
            } else {
                rig = try await APIRig(kind)
                shop = try await rig.site(
                    "shop", ["phone-codes": policy, "answers": "certificate", "further-factors": "website"])
            }
            phone = try TestPhone(
                pushToken: "push-\(UniqueText.next())", agreement: agrees ? try P256PrivateKey.generate() : nil)
            let token: String
            let code: String
            if let other, other.username == user {
                token = try #require(await shop.send("GET", "/user/\(user)")["token"]?.string)
                code = try #require(await shop.send("POST", "/user/\(user)/activation")["code"]?.string)
            } else {
                (token, code) = try await shop.register(user)
            }
            let bound = try await shop.verify(phone, token: token, code: code)
            device = try #require(bound["device"]?.string, "\(bound.text)")
            site = Site(rig: rig, certificate: phone.certificate(device: try #require(DeviceID(device))))
        }

        var agreement: P256PrivateKey {
            get throws { try #require(phone.agreement) }
        }

        func request(
            agreement: JSONValue? = nil, after: Duration = .zero, device: String? = nil, website: String = "shop",
            header: (inout JSONObject) -> Void = { _ in }, claims: (inout JSONObject) -> Void = { _ in }
        ) throws -> String {
            try phone.secretRequest(
                device: device ?? self.device, origin: RelayRig.origin, website: website,
                at: rig.relay.time.now() + after, header: header
            ) { object in
                if let agreement { object["agreement"] = agreement }
                claims(&object)
            }
        }

        func ask(_ request: String? = nil) async throws -> Response {
            rig.relay.time.advance(by: .seconds(7))
            return await site.send("POST", "/device/totp", ["request": .string(try request ?? self.request())])
        }

        /// Opens the secret as the protocol page describes it.
        func opened(_ answer: Response, by key: P256PrivateKey? = nil) throws -> JSONObject {
            let factor = try #require(answer["factor"]?.string, "\(answer.text)")
            let sealed = try #require(answer["secret"]?.string, "\(answer.text)")
            let parties = JWE.Parties(
                sender: Array("\(RelayRig.origin)#shop".utf8), recipient: Array("\(device).\(factor)".utf8))
            let (header, plaintext) = try JWE.open(sealed, with: try key ?? agreement, between: parties)
            #expect(header["typ"] == "twoefay-secret+jwe" && header["aud"] == .string("\(RelayRig.origin)#shop"))
            #expect(header["kid"] == .string(device) && header["factor"] == .string(factor))
            return try #require(try JSONReader.read(plaintext.reveal()).object)
        }

        func code(_ answer: Response) throws -> String {
            let object = try opened(answer)
            let secret = Secret(try #require(object["secret"]?.string.flatMap { Base32.decode($0) }))
            let (algorithm, digits) = (object["algorithm"]?.string ?? "", object["digits"]?.integer ?? 0)
            let period = try #require(object["period"]?.integer.map { Int($0) })
            return OTP.code(
                secret: secret, counter: UInt64(OTP.step(at: rig.relay.time.now(), period: period)),
                algorithm: try #require(OTPAlgorithm(rawValue: algorithm)), digits: Int(digits))
        }

        func isValid(_ code: String) async -> JSONValue? {
            await shop.send("POST", "/verify-otp", ["username": .string(username), "otp": .string(code)])["valid"]
        }

        func factors() async -> [JSONObject] {
            (await shop.send("GET", "/user/\(username)")["factors"]?.array ?? []).compactMap(\.object)
                .filter { $0["kind"] == "totp" }
        }

        func audited() throws -> Int64 {
            try rig.relay.count("SELECT count(*) FROM audit WHERE event IN ('secret.delivered', 'secret.repeated')")
        }
    }

    @Test(arguments: StoreKind.all) func enrolledPhoneGetsWorkingCodes(kind: StoreKind) async throws {
        let bound = try await Bound(kind)
        #expect(await bound.factors().isEmpty)
        let answer = try await bound.ask()
        #expect(answer.status == 200, "\(answer.text)")
        let factor = try #require(await bound.factors().first)
        #expect(factor["state"] == "active" && factor["device"] == .string(bound.device))
        let code = try bound.code(answer)
        #expect(await bound.isValid(code) == true)
        #expect(await bound.isValid(code) == false, "a code counts once")
        // The secret is neither in the answer nor in the audit in clear.
        let secret = try #require(try bound.opened(answer)["secret"]?.string)
        #expect(!answer.text.contains(secret))
        #expect(try bound.audited() == 1)
        #expect(
            try bound.rig.relay.count(
                "SELECT count(*) FROM audit WHERE event = 'secret.delivered' AND device_id IS NOT NULL") == 1)
        let device = try #require(await bound.shop.devices("bob").first)
        #expect(device["agreement"]?.object == (try bound.agreement).publicKey.jwk)
    }

    /// Under `again` the same phone gets the same secret later, against a new request.
    @Test(arguments: StoreKind.all) func sameSecretIsDeliveredAgainUnderThePolicy(kind: StoreKind) async throws {
        let bound = try await Bound(kind)
        let first = try await bound.ask()
        bound.rig.relay.time.advance(by: .seconds(86_400 * 30))
        let second = try await bound.ask()
        #expect(try bound.opened(first) == bound.opened(second))
        #expect(first["factor"] == second["factor"] && first["secret"] != second["secret"])
        #expect(try bound.audited() == 2)
    }

    @Test(arguments: StoreKind.all) func secretIsDeliveredOnceUnderThePolicy(kind: StoreKind) async throws {
        let bound = try await Bound(kind, policy: "once")
        let first = try await bound.ask()
        // The answer may have been lost.
        let repeated = try await bound.ask()
        #expect(try bound.opened(first) == bound.opened(repeated))
        bound.rig.relay.time.advance(by: .seconds(600))
        let late = try await bound.ask()
        #expect(late.status == 409 && late.faults == ["request state"], "\(late.text)")
        #expect(try bound.audited() == 2)
    }

    @Test func policyIsOffByDefault() async throws {
        #expect(Policy().phoneCodes == .off)
        let bound = try await Bound(policy: "off")
        let answer = try await bound.ask()
        #expect(answer.status == 403 && answer["detail"]?.string?.contains("phone-codes") == true, "\(answer.text)")
        #expect(await bound.factors().isEmpty)
    }

    /// Whoever has the unlocked phone, and cannot approve with it, gets no codes in its place.
    @Test(arguments: [
        "\"min-os-ios\":\"17\"", "\"attestation-android\":\"required\"", "\"min-uv\":\"biometric\"",
        "\"max-uv-age\":\"60\"",
    ])
    func demandsOnThePhoneExcludeCodes(policy: String) async throws {
        let bound = try await Bound()
        try bound.rig.relay.execute("UPDATE website SET policy = '{\"phone-codes\":\"again\",\(policy)}'")
        let answer = try await bound.ask()
        #expect(answer.status == 403, "\(answer.text)")
        #expect(await bound.factors().isEmpty)
    }

    /// The demand may be that of the user's group alone, or be lifted by it.
    @Test(arguments: StoreKind.all) func demandsOfTheGroupCount(kind: StoreKind) async throws {
        let bound = try await Bound(kind)
        try bound.rig.relay.execute("UPDATE user SET policy = '{\"screen-lock\":\"on\"}'")
        let refused = try await bound.ask()
        #expect(refused.status == 403 && refused["detail"]?.string?.contains("screen-lock") == true, "\(refused.text)")
        try bound.rig.relay.execute(
            "UPDATE website SET policy = '{\"phone-codes\":\"again\",\"screen-lock\":\"on\"}'")
        try bound.rig.relay.execute("UPDATE user SET policy = '{\"screen-lock\":\"off\"}'")
        let given = try await bound.ask()
        #expect(given.status == 200, "\(given.text)")
    }

    // MARK: Attacks

    @Test(arguments: StoreKind.all) func anotherPhoneGetsNothing(kind: StoreKind) async throws {
        let bound = try await Bound(kind)
        let answer = try await bound.ask()
        // A second phone of the same user, and a phone of another user.
        let second = try await Bound(beside: bound)
        let stranger = try await Bound(beside: bound, user: "eve")
        let taken = try await second.ask()
        #expect(taken.status == 409 && taken.faults == ["totp taken"], "\(taken.text)")
        for thief in [second, stranger] {
            // The victim's request, and one that the thief signs in the victim's name.
            for request in [try bound.request(), try thief.request(device: bound.device)] {
                let refused = try await thief.ask(request)
                #expect(refused.status == 400 && refused.faults == ["request format"], "\(refused.text)")
            }
            #expect(throws: JWEError.self) { try bound.opened(answer, by: try thief.agreement) }
        }
        let own = try await stranger.ask()
        #expect(try stranger.opened(own)["secret"] != bound.opened(answer)["secret"])
        #expect(throws: JWEError.self) { try bound.opened(own) }
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func replayedRequestIsRefused(kind: StoreKind) async throws {
        let bound = try await Bound(kind)
        let request = try bound.request()
        let later = try bound.request(after: .seconds(30))
        #expect(try await bound.ask(request).status == 200)
        for old in [request, later, request, later].enumerated() {
            let answer = try await bound.ask(old.element)
            #expect(answer.status == (old.offset == 1 ? 200 : 409), "\(old.offset): \(answer.text)")
        }
        // Nor does it count after the factor was removed, or at another relay.
        #expect(await bound.shop.send("DELETE", "/user/bob/totp").status == 204)
        let other = try await APIRig(beside: bound.rig)
        let replayed = await Site(rig: other, certificate: bound.site.certificate)
            .send("POST", "/device/totp", ["request": .string(later)])
        #expect(replayed.status == 409 && replayed.faults == ["request mismatch"], "\(replayed.text)")
        #expect(await bound.factors().isEmpty)
        #expect(try bound.audited() == 2)
    }

    @Test(arguments: StoreKind.all) func swappedKeyIsRefused(kind: StoreKind) async throws {
        let bound = try await Bound(kind)
        let thief = try P256PrivateKey.generate()
        // The phone itself signs another key, or its signing key; the key was swapped on the way; or it is private.
        for key in [thief.publicKey, bound.phone.key.publicKey] {
            let signed = try await bound.ask(try bound.request(agreement: .object(key.jwk)))
            #expect(signed.status == 409 && signed.faults == ["agreement mismatch"], "\(signed.text)")
        }
        var parts = try bound.request().split(separator: ".").map(String.init)
        parts[1] = try bound.request(agreement: .object(thief.publicKey.jwk)).split(separator: ".").map(String.init)[1]
        let swapped = try await bound.ask(parts.joined(separator: "."))
        #expect(swapped.status == 400 && swapped.faults == ["request format"], "\(swapped.text)")
        var secretKey = try bound.agreement.publicKey.jwk
        secretKey["d"] = "AAAA"
        #expect(try await bound.ask(try bound.request(agreement: .object(secretKey))).status == 400)
        #expect(await bound.factors().isEmpty)
    }

    /// The proof of the enrolment covers the key, so nobody swaps it at the binding either.
    @Test func swappedKeyInTheProofBindsNothing() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["phone-codes": "again"])
        let (token, code) = try await shop.register("bob")
        let phone = try TestPhone(pushToken: "push", agreement: try P256PrivateKey.generate())
        let thief = try P256PrivateKey.generate().publicKey.jwk
        func proof(_ agreement: JSONValue?) throws -> String {
            try phone.proof(
                token: token, code: code, origin: RelayRig.origin, website: "shop", at: rig.relay.time.now()
            ) {
                if let agreement { $0["agreement"] = agreement }
            }
        }
        var parts = try proof(nil).split(separator: ".").map(String.init)
        parts[1] = try proof(.object(thief)).split(separator: ".").map(String.init)[1]
        for wrong in [
            parts.joined(separator: "."), try proof(.object(phone.key.publicKey.jwk)), try proof("key"),
            try proof(.null),
        ] {
            let answer = await rig.stranger.send(
                "POST", "/verify",
                [
                    "id_token": .string(token), "dev_token": "push", "activation_code": .string(code),
                    "proof": .string(wrong),
                ])
            #expect(answer.status == 401, "\(answer.text)")
        }
        #expect(try rig.relay.count("SELECT count(*) FROM device") == 0)
    }

    @Test func statementOfAnotherKindOrTimeIsRefused() async throws {
        let bound = try await Bound()
        let wrong = [
            try bound.request(header: { $0["typ"] = "twoefay-status+jwt" }), try bound.request(website: "bank"),
            try bound.request(claims: { $0["v"] = 2 }), try bound.request(claims: { $0["iat"] = "now" }),
            try bound.request(claims: { $0["agreement"] = .null }), "a.b.c",
        ]
        for (index, request) in wrong.enumerated() {
            let answer = try await bound.ask(request)
            #expect(answer.status == 400 && answer.faults == ["request format"], "\(index): \(answer.text)")
        }
        bound.rig.relay.time.advance(by: .seconds(60))
        for seconds in [-310, 310] {
            let answer = try await bound.ask(try bound.request(after: .seconds(seconds)))
            #expect(answer.status == 400 && answer.faults == ["request mismatch"], "\(answer.text)")
        }
        #expect(await bound.factors().isEmpty)
    }

    @Test(arguments: StoreKind.all) func phoneWithoutKeyGetsNothing(kind: StoreKind) async throws {
        let bound = try await Bound(kind, agrees: false)
        let answer = try await bound.ask(
            try bound.request(agreement: .object(try P256PrivateKey.generate().publicKey.jwk)))
        #expect(answer.status == 409 && answer.faults == ["agreement mismatch"], "\(answer.text)")
        #expect(await bound.shop.devices("bob").first?["agreement"] == nil)
    }

    /// The codes of a phone end with the phone, and a new phone gets another secret.
    @Test(arguments: StoreKind.all, ["suspended", "unbound", "unbound by itself"])
    func stoppedPhoneLosesItsCodes(kind: StoreKind, how: String) async throws {
        let bound = try await Bound(kind)
        let answer = try await bound.ask()
        let path = "/user/bob/devices/\(bound.device)"
        let stopped =
            switch how {
            case "suspended": await bound.shop.send("PATCH", path, ["state": "suspended"])
            case "unbound": await bound.shop.send("DELETE", path)
            default: await bound.site.send("DELETE", "/device")
            }
        #expect([200, 204].contains(stopped.status), "\(stopped.text)")
        #expect(await bound.factors().isEmpty)
        #expect(try await bound.ask().status == 401)
        let refused = await bound.shop.send(
            "POST", "/verify-otp", ["username": "bob", "otp": .string(try bound.code(answer))])
        #expect(refused.status == 409, "\(refused.text)")
        let next: Bound
        if how == "suspended" {
            #expect(await bound.shop.send("PATCH", path, ["state": "active"]).status == 200)
            next = bound
        } else {
            next = try await Bound(beside: bound)
        }
        let fresh = try await next.ask()
        #expect(try next.opened(fresh)["secret"] != bound.opened(answer)["secret"], "\(fresh.text)")
        #expect(await next.factors().count == 1)
    }

    /// Whoever writes to the store cannot redirect a secret.
    @Test(
        arguments: StoreKind.all,
        [
            "UPDATE device SET agreement_key = x'KEY'", "UPDATE device SET secret_asked_at = NULL",
            "UPDATE factor SET device_id = x'SECOND'",
            "UPDATE factor SET secret = x'00'",
        ])
    func forgedRowIsRefused(kind: StoreKind, change: String) async throws {
        let bound = try await Bound(kind)
        #expect(try await bound.ask().status == 200)
        let second = try await Bound(beside: bound)
        let thief = try P256PrivateKey.generate().publicKey
        let sql = change.replacing("KEY", with: Hex.encode(thief.x963)).replacing("SECOND", with: second.device)
        try bound.rig.relay.forge(sql)
        for (phone, key) in [(bound, thief), (second, try second.agreement.publicKey)] {
            let answer = try await phone.ask(try phone.request(agreement: .object(key.jwk)))
            #expect(answer.status == 500 || answer.status == 409, "\(answer.text)")
            #expect(answer["secret"] == nil)
        }
        #expect(try await bound.ask().status == 500)
        #expect(try bound.audited() == 1)
    }

    @Test(arguments: StoreKind.all) func lockedUserGetsNothing(kind: StoreKind) async throws {
        let bound = try await Bound(kind)
        for state in ["locked", "frozen", "disabled"] {
            try bound.rig.relay.execute("UPDATE user SET state = '\(state)'")
            let answer = try await bound.ask()
            #expect(answer.status == 403, "\(state): \(answer.text)")
        }
        try bound.rig.relay.execute("UPDATE user SET state = 'active', expires_at = '2000-01-01 00:00:00.000'")
        #expect(try await bound.ask().status == 403)
        #expect(try bound.rig.relay.count("SELECT count(*) FROM factor") == 0)
    }

    /// SQL that stops a phone stops its codes, too.
    @Test(arguments: StoreKind.all) func codesEndWithThePhoneBySQL(kind: StoreKind) async throws {
        for change in ["UPDATE device SET state = 'suspended'", "DELETE FROM device"] {
            let bound = try await Bound(kind)
            let answer = try await bound.ask()
            #expect(await bound.isValid(try bound.code(answer)) == true)
            try bound.rig.relay.forge(change)
            bound.rig.relay.time.advance(by: .seconds(60))
            #expect(await bound.isValid(try bound.code(answer)) != true, "\(change)")
        }
    }

    /// An app of the user is never replaced behind the user's back.
    @Test(arguments: StoreKind.all) func appOfTheUserStays(kind: StoreKind) async throws {
        let bound = try await Bound(kind)
        #expect(try await bound.ask().status == 200)
        try bound.rig.relay.execute("UPDATE factor SET device_id = NULL")
        let answer = try await bound.ask()
        #expect(answer.status == 409 && answer.faults == ["totp taken"], "\(answer.text)")
        #expect(await bound.factors().first?["device"] == nil)
    }

    /// Otherwise a phone could use up the messages of an hour, so that its user does not hear of a new phone.
    @Test(arguments: StoreKind.all) func repeatedDeliveryIsAnnouncedOnceADay(kind: StoreKind) async throws {
        let bound = try await Bound(kind)
        try bound.rig.relay.execute("UPDATE user SET email = 'bob@example.com'")
        func announced() throws -> Int64 {
            try bound.rig.relay.count("SELECT count(*) FROM outbox WHERE kind = 'mail' AND event = 'secret.delivered'")
        }
        for _ in 1...10 { #expect(try await bound.ask().status == 200) }
        #expect(try announced() == 1)
        #expect(try bound.audited() == 10)
        bound.rig.relay.time.advance(by: .seconds(86_400))
        #expect(try await bound.ask().status == 200)
        #expect(try announced() == 2)
    }

    @Test func deliveryIsAnnouncedToUserAndWebsite() async throws {
        let bound = try await Bound()
        try bound.rig.relay.execute("UPDATE user SET email = 'bob@example.com'")
        try bound.rig.relay.execute("UPDATE website SET webhook_url = 'https://shop.example/hook'")
        #expect(try await bound.ask().status == 200)
        for kind in ["mail", "webhook"] {
            #expect(
                try bound.rig.relay.count(
                    "SELECT count(*) FROM outbox WHERE kind = '\(kind)' AND event = 'secret.delivered'") == 1, "\(kind)"
            )
        }
    }

    @Test func phoneMayAskTenTimesAMinute() async throws {
        let bound = try await Bound()
        for second in 0..<10 {
            let answer = await bound.site.send(
                "POST", "/device/totp", ["request": .string(try bound.request(after: .seconds(second)))])
            #expect(answer.status == 200, "\(answer.text)")
        }
        let limited = await bound.site.send(
            "POST", "/device/totp", ["request": .string(try bound.request(after: .seconds(20)))])
        #expect(limited.status == 429 && limited.fields["retry-after"] == "60", "\(limited.text)")
    }
}
