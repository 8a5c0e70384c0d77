import Bytes
import Crypto
import Domain
import HTTP
import JSON
import TestSupport
import Testing
import World

@testable import API

/// `POST /device/goodbye`: the end of an enrolment, which both sides sign.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct GoodbyeTests {
    private struct Bound {
        let rig: APIRig
        let shop: Site
        let phone: TestPhone
        let device: String
        let site: Site

        init(_ kind: StoreKind = .memory) async throws {
            rig = try await APIRig(kind)
            shop = try await rig.site("shop")
            let (token, code) = try await shop.register("bob")
            phone = try TestPhone(pushToken: "push-of-bob")
            let bound = try await shop.verify(phone, token: token, code: code)
            device = try #require(bound["device"]?.string, "\(bound.text)")
            site = Site(rig: rig, certificate: phone.certificate(device: try #require(DeviceID(device))))
        }

        static let nonce = "AAECAwQFBgcICQoLDA0ODw"

        func goodbye(
            leaves: Bool, device other: String? = nil, by signer: P256PrivateKey? = nil, after: Duration = .zero,
            type: String = "twoefay-goodbye+jwt", _ change: (inout JSONObject) -> Void = { _ in }
        ) throws -> String {
            var claims: JSONObject = [
                "v": 1, "aud": .string("\(RelayRig.origin)#shop"), "nonce": .string(Self.nonce),
                "leaves": .bool(leaves), "iat": .integer((rig.relay.time.now() + after).seconds),
            ]
            change(&claims)
            return try JWS.sign(
                header: ["typ": .string(type), "kid": .string(other ?? device)],
                payload: JSONWriter.write(.object(claims)), key: signer ?? phone.key)
        }

        /// Sends it without another proof of who the caller is.
        func say(_ goodbye: String) async -> Response {
            await rig.stranger.send("POST", "/device/goodbye", ["goodbye": .string(goodbye)])
        }

        /// The claims of the farewell, whose signature is checked.
        func farewell(_ answer: Response) throws -> JSONObject {
            try #require(answer.status == 200, "\(answer.text)")
            let certificate = try RelayRig.server.get().certificate
            let text = try #require(answer["farewell"]?.string)
            let signed = try #require(certificate.verified(text))
            #expect(signed.type == "twoefay-farewell+jwt")
            #expect(signed.header["x5t#S256"]?.string == Base64URL.encode(SHA256.hash(certificate.der)))
            return try #require(try JSONReader.read(signed.payload).object)
        }

        func expected(by author: String) -> JSONObject {
            [
                "v": 1, "aud": .string("\(RelayRig.origin)#shop"), "device": .string(device),
                "thumbprint": .string(phone.key.publicKey.thumbprint), "by": .string(author),
                "nonce": .string(Self.nonce), "time": .string(rig.relay.time.now().rfc3339),
            ]
        }

        func isBound() async -> Bool { await site.send("POST", "/pending", [:]).status == 200 }
    }

    @Test(arguments: StoreKind.all) func phoneLeaves(kind: StoreKind) async throws {
        let bound = try await Bound(kind)
        let asked = await bound.say(try bound.goodbye(leaves: false))
        #expect(asked.status == 200 && asked["bound"] == true && asked["farewell"] == nil, "\(asked.text)")
        #expect(await bound.isBound())
        let goodbye = try bound.goodbye(leaves: true)
        // The answer may have been lost.
        for _ in 0..<2 { #expect(try bound.farewell(await bound.say(goodbye)) == bound.expected(by: "phone")) }
        #expect(await !bound.isBound())
        #expect(await bound.shop.devices("bob").first?["state"] == "revoked")
        #expect(
            try bound.rig.relay.count(
                "SELECT count(*) FROM audit WHERE event = 'device.unbound' AND outcome = 'phone'") == 1)
    }

    /// A phone that others have unbound learns it for certain.
    @Test(arguments: StoreKind.all) func unboundPhoneLearnsWhoDidIt(kind: StoreKind) async throws {
        let bound = try await Bound(kind)
        let gone = await bound.shop.send("DELETE", "/user/bob/devices/\(bound.device)")
        #expect(gone.status == 204, "\(gone.text)")
        #expect(await !bound.isBound())
        for leaves in [false, true] {
            let answer = await bound.say(try bound.goodbye(leaves: leaves))
            #expect(try bound.farewell(answer) == bound.expected(by: "website"))
        }
        let operators = try await Bound(kind)
        try operators.rig.relay.execute("UPDATE device SET state = 'revoked', stopped_by = 'operator'")
        let answer = await operators.say(try operators.goodbye(leaves: false))
        #expect(try operators.farewell(answer) == operators.expected(by: "operator"))
    }

    /// The phone chooses the time, and so does whoever still has the key of a former phone.
    @Test(arguments: [Int64.max, 9_223_372_036_854_775, -9_223_372_036_854_775, Int64.min] as [Int64])
    func timeThatNoClockShowsIsRefused(seconds: Int64) async throws {
        let bound = try await Bound()
        let answer = await bound.say(try bound.goodbye(leaves: true) { $0["iat"] = .integer(seconds) })
        #expect((400..<500).contains(answer.status), "\(answer.text)")
        #expect(await bound.isBound())
    }

    /// Nobody but the phone learns anything, and a suspended phone does not either.
    @Test func strangersLearnNothing() async throws {
        let bound = try await Bound()
        let key = try P256PrivateKey.generate()
        let none = String(repeating: "0", count: 32)
        let wrong = [
            try bound.goodbye(leaves: true, by: key), try bound.goodbye(leaves: true, device: none),
            try bound.goodbye(leaves: true, device: none, by: key),
            try bound.goodbye(leaves: true) { $0["aud"] = .string("\(RelayRig.origin)#bank") },
            try bound.goodbye(leaves: true) { $0["v"] = 2 }, try bound.goodbye(leaves: true) { $0["nonce"] = "short" },
            try bound.goodbye(leaves: true) { $0["leaves"] = 1 }, try bound.goodbye(leaves: true) { $0["more"] = 1 },
            // An old statement of a stranger is not told that it is old.
            try bound.goodbye(leaves: true, by: key, after: .seconds(-301)),
        ]
        var texts: [String] = []
        for goodbye in wrong {
            let answer = await bound.say(goodbye)
            #expect(answer.status == 401, "\(answer.text)")
            texts.append(answer.text)
        }
        #expect(Set(texts).count == 1)
        #expect(await bound.isBound())
        let suspended = await bound.shop.send(
            "PATCH", "/user/bob/devices/\(bound.device)", ["state": "suspended"])
        #expect(suspended.status == 200, "\(suspended.text)")
        #expect(await bound.say(try bound.goodbye(leaves: true)).text == texts[0])
    }

    @Test func oldOrMalformedGoodbyeIsRefused() async throws {
        let bound = try await Bound()
        for after in [Duration.seconds(-301), .seconds(301)] {
            let answer = await bound.say(try bound.goodbye(leaves: true, after: after))
            #expect(answer.status == 400 && answer.faults == ["goodbye mismatch"], "\(answer.text)")
        }
        for text in ["no statement", try bound.goodbye(leaves: true, type: "twoefay-pin+jwt")] {
            let answer = await bound.say(text)
            #expect(answer.status == 400 && answer.faults == ["goodbye format"], "\(answer.text)")
        }
        #expect(await bound.isBound())
    }

    @Test func eachSenderHasABudget() async throws {
        let bound = try await Bound()
        let goodbye = try bound.goodbye(leaves: false)
        var statuses: [Int] = []
        for _ in 0..<101 { statuses.append(await bound.say(goodbye).status) }
        #expect(statuses.prefix(100).allSatisfy { $0 == 200 } && statuses.last == 429)
    }
}
