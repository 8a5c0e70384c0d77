import Bytes
import Crypto
import EventLoop
import HTTP
import JSON
import Phone
import TestSupport
import Testing
import World

@testable import Demo

@Suite(.timeLimit(.minutes(15))) struct WebsiteTests {
    private func website(_ relay: FakeRelay, _ loop: EventLoop, _ address: WebAddress) throws -> Website {
        let issued = try relay.websites.issueClient(uri: "twoefay:website:shop", days: 1, at: loop.time.now())
        return try Website(
            loop: loop, relay: address, authority: try relay.authority.certificatePEM(),
            certificate: try issued.certificatePEM(), key: try issued.keyPEM(), randomness: SystemRandomness())
    }

    /// Whatever became of the first attempt, it is the same request for the relay.
    @Test func repeatsUnderTheSameKey() async throws {
        let relay = try FakeRelay(
            (503, ["code": "unavailable"]), (503, ["code": "unavailable"]),
            (201, ["login": "verified", "challenge": "c1", "number": "47", "expires_at": "2026-11-21T10:09:47.940Z"]),
            (201, ["login": "verified", "challenge": "c2", "expires_at": "2026-11-21T10:09:47.940Z"]))
        let asked = try await relay.run { loop, address in
            let website = try website(relay, loop, address)
            defer { website.close() }
            let question = Website.LoginQuestion(token: "ab12", ip: "192.0.2.7", userAgent: "test")
            return [try await website.login(question), try await website.login(question)]
        }
        #expect(asked.map(\.challenge) == ["c1", "c2"])
        #expect(asked.map(\.number) == ["47", nil])
        let keys = relay.asked.map { $0.fields["idempotency-key"] }
        try #require(keys.count == 4 && keys.allSatisfy { $0 != nil })
        #expect(keys[0] == keys[1] && keys[1] == keys[2] && keys[2] != keys[3])
        #expect(relay.asked[0].body == relay.asked[2].body)
        #expect(relay.asked.allSatisfy { $0.certificate?.uris == ["twoefay:website:shop"] })
    }

    @Test func waitsForTheEnd() async throws {
        let relay = try FakeRelay(
            (200, ["login": "wait"]), (200, ["login": "wait"]), (200, ["login": "failure", "reason": "expired"]))
        let outcome = try await relay.run { loop, address in
            let website = try website(relay, loop, address)
            defer { website.close() }
            return try await website.outcome(of: "c1").get()
        }
        #expect(outcome == Website.Outcome(login: "failure", reason: "expired"))
        #expect(relay.asked.map { $0.fields["prefer"] } == ["wait=60", "wait=60", "wait=60"])
    }

    @Test func saysWhatTheRelayRefused() async throws {
        let relay = try FakeRelay((409, ["code": "conflict", "detail": "username: is taken"]))
        let failure = await #expect(throws: CallFailure.self) {
            try await relay.run { loop, address in
                let website = try website(relay, loop, address)
                defer { website.close() }
                return try await website.register(username: "alice", email: "alice@example.com").token
            }
        }
        #expect(failure == .refused(RelayRefusal(status: 409, code: "conflict", detail: "username: is taken")))
    }
}
