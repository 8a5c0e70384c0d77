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
    private func website(_ relay: FakeRelay, _ loop: EventLoop, _ address: WebAddress) throws -> Website {
        let issued = try relay.websites.issueClient(uri: "twoefay:website:shop", days: 1, at: loop.time.now())
        let access = WebsiteAccess(
            name: "shop", displayName: "The Shop", relay: address, authority: try relay.authority.certificatePEM(),
            certificate: try issued.certificatePEM(), key: try issued.keyPEM())
        return try Website(access, loop: loop, randomness: SystemRandomness())
    }

    private static let asked: JSONObject = [
        "login": "verified", "challenge": "c1", "number": "47", "factor": "push",
        "expires_at": "2026-11-21T10:09:47.940Z",
    ]

    private func verdict(_ told: JSONObject) async throws -> Website.Verdict {
        let relay = try FakeRelay((201, Self.asked), (200, told))
        return try await relay.run { loop, address in
            let website = try website(relay, loop, address)
            let login = try await website.ask(LoginRequest(username: "ada"))
            let verdict = try await website.verdict(on: login)
            await website.close()
            return verdict
        }
    }

    /// What the relay alone says opens no door.
    @Test func letsNobodyInOnTheRelaysWord() async throws {
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

    /// The phone reads a secret that the relay has not seen, another one for each customer.
    @Test func putsASecretOfItsOwnIntoTheCode() async throws {
        let known: JSONObject = [
            "token": "t",
            "activation": [
                "code": "C", "uri": "twoefay://enrol?code=C", "qr": "<svg/>", "expires_at": "2026-11-21T10:09:47.940Z",
            ],
        ]
        let relay = try FakeRelay((201, known), (201, known))
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
}
