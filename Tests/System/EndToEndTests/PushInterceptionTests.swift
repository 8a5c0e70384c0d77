import Bytes
import Crypto
import EventLoop
import FakePushServices
import JSON
import Log
import TLS
import TestSupport
import Testing
import World

/// An attacker in the middle, between a relay and the push service.
@Suite("An attacker between relay and push service", .timeLimit(.minutes(15)), .mayBlock) struct PushInterceptionTests {
    private static let phoneToken = "feedfacecafebeef0123456789abcdef"

    /// A push service, and an interposer on the way to it.
    private final class Service: Sendable {
        let team: FakeTeam
        let apple: FakePushService
        let middle: Interposer
        private let group: LoopGroup
        private let directory: TemporaryDirectory

        init(_ team: FakeTeam) async throws {
            self.team = team
            group = try LoopGroup.start(count: 1, time: SystemTime())
            directory = try TemporaryDirectory()
            apple = FakePushService(
                loop: group.loops[0], tls: try team.tls(), topic: team.topic,
                authentication: team.tokenAuthentication, randomness: SystemRandomness(),
                log: Log(minimum: .error))
            middle = try Interposer(to: try await apple.start())
        }

        func write(into settings: inout String) throws {
            try TextFile.write(try team.key.pem().reveal(), to: directory("team.p8"))
            try TextFile.write(try team.authority.certificatePEM(), to: directory("team-ca.pem"))
            try settings.set("push.apns.endpoint", to: "https://localhost:\(middle.port)")
            try settings.set("push.apns.topic", to: team.topic)
            try settings.set("push.apns.key", to: directory("team.p8"))
            try settings.set("push.apns.key_id", to: team.keyID)
            try settings.set("push.apns.team_id", to: team.teamID)
            try settings.set("push.apns.ca", to: directory("team-ca.pem"))
        }

        func stop() async {
            await apple.stop()
            group.stopAndJoin()
        }
    }

    private func bind(in fixture: Fixture) async throws -> APIClient {
        let shop = try await fixture.website("shop")
        let (token, code) = try await shop.register("bob.pushed")
        _ = try await Phone(in: fixture, token: token, code: code, pushToken: Self.phoneToken)
        return shop
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func interceptorOfPushesSeesOnlyTLS(_ kind: StoreKind) async throws {
        let service = try await Service(try FakeTeam(at: SystemTime().now()))
        try await Fixture.run(kind, change: { text throws in try service.write(into: &text) }) { fixture in
            let shop = try await bind(in: fixture)
            let asked = try await shop.curl(
                "POST", "/login", ["username": "bob.pushed", "service": "Shop of Bob", "ip": "192.0.2.177"])
            #expect(asked["factor"] == "push")
            let push = try await service.apple.next()
            #expect(push.deviceToken == Self.phoneToken)
            #expect(push.challenge == asked["challenge"]?.string)
            fixture.record(push.providerToken)

            let passed = service.middle.passed
            #expect(!passed.isEmpty)
            let secrets = [
                Self.phoneToken, push.challenge ?? "", push.providerToken ?? "", service.team.topic, "Shop of Bob",
                "192.0.2.177", "TWOEFAY_LOGIN",
            ]
            for each in passed {
                #expect(Records.areAll(each.toServer))
                #expect(Records.areAll(each.toClient))
                for secret in secrets {
                    let isSeen = Records.contain(secret, each.toServer) || Records.contain(secret, each.toClient)
                    #expect(!isSeen, "\(secret) was seen")
                }
            }
        }
        await service.stop()
    }

    /// A server with the same name, and with a certificate of an unknown authority.
    @Test func interceptorCannotImpersonateThePushService() async throws {
        let now = SystemTime().now()
        let service = try await Service(try FakeTeam(at: now))
        let stranger = try await Service(try FakeTeam(at: now))
        let elsewhere = try await Service(try FakeTeam(names: ["elsewhere.example.com"], at: now))
        for other in [stranger, elsewhere] {
            try await Fixture.run(
                change: { text throws in
                    try service.write(into: &text)
                    if other === elsewhere { try other.write(into: &text) }
                }
            ) { fixture in
                service.middle.lead(to: other.apple.port)
                let shop = try await bind(in: fixture)
                let asked = try await shop.curl("POST", "/login", ["username": "bob.pushed"])
                #expect(asked.status == 201)
                let logged = try await fixture.relay.logged("event=apns.disconnected")
                #expect(logged.contains("certificate"), "\(logged)")
                #expect(other.apple.acceptedCount == 0)
                // When the attacker is gone, the push is sent.
                if other === stranger {
                    service.middle.lead(to: service.apple.port)
                    let push = try await service.apple.next()
                    #expect(push.challenge == asked["challenge"]?.string)
                }
            }
        }
        for each in [service, stranger, elsewhere] { await each.stop() }
    }

    @Test func interceptorOfPushesCannotDowngradeTLS() async throws {
        let service = try await Service(try FakeTeam(at: SystemTime().now()))
        let attempts: [Interposer.Tamper] = [
            { piece, direction, number in
                direction == .toServer && number == 0 ? Records.without(Records.alpn, piece) : piece
            },
            { piece, direction, number in
                direction == .toServer && number == 0 ? Records.without(Records.supportedVersions, piece) : piece
            },
            { piece, direction, _ in
                direction == .toClient ? Array("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".utf8) : piece
            },
        ]
        service.middle.set(attempts[0])
        try await Fixture.run(change: { text throws in try service.write(into: &text) }) { fixture in
            let shop = try await bind(in: fixture)
            let asked = try await shop.curl("POST", "/login", ["username": "bob.pushed"])
            for (index, attempt) in attempts.enumerated() {
                service.middle.set(attempt)
                // One after the other, because the relay reconnects by itself.
                try await fixture.relay.logged("event=apns.disconnected", number: index + 1)
            }
            #expect(service.apple.acceptedCount == 0)
            service.middle.set(nil)
            let push = try await service.apple.next()
            #expect(push.challenge == asked["challenge"]?.string)
        }
        await service.stop()
    }
}
