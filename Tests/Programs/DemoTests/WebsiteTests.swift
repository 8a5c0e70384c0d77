import Bytes
import Crypto
import EventLoop
import HTTP
import JSON
import TestSupport
import Testing
import TwoefayClient
import World

@testable import Demo

@Suite(.timeLimit(.minutes(15))) struct WebsiteTests {
    private func website(
        _ relay: FakeRelay, _ loop: EventLoop, _ address: WebAddress, _ time: any TimeSource = SystemTime()
    ) throws -> Website {
        let issued = try relay.websites.issueClient(uri: "twoefay:website:shop", days: 1, at: loop.time.now())
        let access = WebsiteAccess(
            name: "shop", displayName: "The Shop", relay: address, authority: try relay.authority.certificatePEM(),
            certificate: try issued.certificatePEM(), key: try issued.keyPEM())
        return try Website(access, loop: loop, time: time, randomness: SystemRandomness())
    }

    private static let asked: JSONObject = [
        "login": "verified", "challenge": "c1", "number": "47", "factor": "push",
        "expires_at": "2026-11-21T10:09:47.940Z",
    ]

    private func verdict(_ answer: JSONObject) async throws -> Website.Verdict {
        let relay = try FakeRelay((201, Self.asked), (200, answer))
        return try await relay.run { loop, address in
            let website = try website(relay, loop, address)
            let login = try await website.ask(LoginRequest(username: "ada"))
            let verdict = try await website.verdict(on: login)
            await website.close()
            return verdict
        }
    }

    /// The website does not trust a success that only the relay reports.
    @Test func websiteAcceptsNoLoginWithoutAReceipt() async throws {
        let success: JSONObject = ["login": "success", "challenge": "c1", "proof": "signed", "steps": []]
        let bare = try await verdict(success)
        #expect(!bare.isLetIn && bare.outcome.isSuccess && bare.fault == .incomplete)
        var code = success
        code["proof"] = "code"
        #expect(try await verdict(code).fault == .notSigned(proof: "code"))
        var stranger = success
        for (name, value) in [("device", "d1"), ("receipt", "a.b.c"), ("context", "e30")] {
            stranger[name] = .string(value)
        }
        #expect(try await verdict(stranger).fault == .unknownDevice)
        let denied = try await verdict(["login": "failure", "challenge": "c1", "steps": [], "reason": "denied"])
        #expect(!denied.isLetIn && denied.fault == nil && denied.outcome.reason == .denied)
    }

    /// Each customer's activation has its own secret, which the relay never sees.
    @Test func activationCarriesTheWebsitesSecret() async throws {
        let relay = try FakeRelay((201, Self.registered), (201, Self.registered))
        let uris = try await relay.run { loop, address in
            let website = try website(relay, loop, address)
            let uris = [
                try await website.register("ada", email: "ada@example.com"),
                try await website.register("bob", email: "bob@example.com"),
            ]
            await website.close()
            return uris
        }
        #expect(uris.allSatisfy { $0.hasPrefix("twoefay://enrol?code=C&k=") } && uris[0] != uris[1])
        #expect(relay.asked.map { $0.body["username"] } == ["ada", "bob"])
    }

    private static let registered: JSONObject = [
        "token": "t",
        "activation": [
            "code": "C", "uri": "twoefay://enrol?code=C", "qr": "<svg/>", "expires_at": "2026-11-21T10:09:47.940Z",
        ],
    ]

    /// Returns a phone as the relay lists it. The secret in `uri` signs its binding.
    private static func device(_ uri: String, _ state: String, of origin: String) throws -> JSONObject {
        let k = try #require(uri.split(separator: "&k=").last.flatMap { Base64URL.decode(String($0)) })
        let jwk = JSONValue.object(try P256PrivateKey.generate().publicKey.jwk)
        let claims: JSONObject = ["v": 1, "aud": .string("\(origin)#shop"), "id_token": "t", "jwk": jwk]
        let binding = JWS.sign(
            header: ["typ": "twoefay-binding+jwt"], payload: JSONWriter.write(claims), secret: Secret(k))
        return ["device": "d1", "state": .string(state), "jwk": jwk, "binding": .string(binding)]
    }

    private static func user(_ devices: JSONObject...) -> JSONObject {
        ["token": "t", "state": "active", "factors": [], "devices": .array(devices.map { .object($0) })]
    }

    /// The secret of an activation is valid for 25 hours: the code may be used at its last moment,
    /// and the approval may take a day. A waiting phone is never pinned, and a phone that the relay
    /// no longer lists is unpinned.
    @Test(arguments: [
        (Duration.zero, "active", true), (.seconds(600), "active", true), (.seconds(600), "suspended", true),
        (.zero, "waiting", false), (.seconds(24 * 3600), "active", true),
        (.seconds(25 * 3600), "active", false),
    ]) func phoneIsPinnedWhileItsActivationIsValid(age: Duration, state: String, isBelieved: Bool) async throws {
        let relay = try FakeRelay((201, Self.registered))
        let pinned = try await relay.run { loop, address in
            let time = TestTime()
            let website = try website(relay, loop, address, time)
            let uri = try await website.register("ada", email: "ada@example.com")
            let device = try Self.device(uri, state, of: address.text)
            for devices in [Self.user(device), Self.user()] { relay.answer(200, devices) }
            time.advance(by: age)
            var pinned: [Set<String>] = []
            for _ in 0..<2 {
                try await website.pinPhones(of: "ada")
                pinned.append(website.pinned(of: "ada"))
            }
            await website.close()
            return pinned
        }
        #expect(pinned == [isBelieved ? ["d1"] : [], []])
    }

    /// The phone used the code in time, but its approval came after the code had expired.
    @Test func phoneThatWaitedForApprovalIsPinned() async throws {
        let relay = try FakeRelay((201, Self.registered))
        let pinned = try await relay.run { loop, address in
            let time = TestTime()
            let website = try website(relay, loop, address, time)
            let uri = try await website.register("ada", email: "ada@example.com")
            var device = try Self.device(uri, "waiting", of: address.text)
            relay.answer(200, Self.user(device))
            device.set("state", .string("active"))
            relay.answer(200, Self.user(device))
            var pinned: [Set<String>] = []
            for _ in 0..<2 {
                time.advance(by: .seconds(12 * 60))
                try await website.pinPhones(of: "ada")
                pinned.append(website.pinned(of: "ada"))
            }
            await website.close()
            return pinned
        }
        #expect(pinned == [[], ["d1"]])
    }

    /// The website keeps at most 16 secrets of a customer; a new one replaces the oldest.
    @Test func activationSecretsAreBounded() {
        var phones = PinnedPhones(token: "t")
        let now = Instant(nanoseconds: 0)
        phones.expect(Secret(utf8: "first"), until: now + .seconds(100))
        for number in 2...16 { phones.expect(Secret(utf8: "\(number)"), until: now + .seconds(1)) }
        #expect(phones.isExpecting(at: now + .seconds(99)) && !phones.isExpecting(at: now + .seconds(100)))
        phones.expect(Secret(utf8: "one too many"), until: now + .seconds(1))
        #expect(!phones.isExpecting(at: now + .seconds(99)))
    }

    /// A login survives single errors of the relay, or of a proxy in front of it.
    @Test func websiteRetriesThroughAnOutage() async throws {
        let denied: JSONObject = ["login": "failure", "challenge": "c1", "steps": [], "reason": "denied"]
        let relay = try FakeRelay((201, Self.asked), (500, [:]), (200, ["odd": true]), (200, denied))
        let verdict = try await relay.run { loop, address in
            let website = try website(relay, loop, address)
            let verdict = try await website.verdict(on: try await website.ask(LoginRequest(username: "ada")))
            await website.close()
            return verdict
        }
        #expect(verdict.outcome.reason == .denied && relay.asked.count == 4)
    }

    @Test func finishedLoginIsForgotten() async throws {
        let denied: JSONObject = ["login": "failure", "challenge": "c1", "steps": [], "reason": "denied"]
        let relay = try FakeRelay((201, Self.asked), (200, denied), (201, Self.asked))
        relay.answer(404, ["code": "not_found"])
        for _ in 0..<3 { relay.answer(201, Self.asked) }
        let counts = try await relay.run { loop, address in
            let time = TestTime()
            let website = try website(relay, loop, address, time)
            var counts: [Int] = []
            func ask() async throws -> OpenLogin {
                let login = try await website.ask(LoginRequest(username: "ada"))
                counts.append(website.openCount)
                return login
            }
            _ = try await website.verdict(on: try await ask())
            counts.append(website.openCount)
            let unknown = try await ask()
            await #expect(throws: CallFault.self) { try await website.verdict(on: unknown) }
            counts.append(website.openCount)
            // No request waits for the result of these two logins.
            _ = try await ask()
            _ = try await ask()
            time.advance(by: .seconds(720))
            _ = try await ask()
            await website.close()
            return counts
        }
        #expect(counts == [1, 0, 1, 0, 1, 2, 1])
    }
}
