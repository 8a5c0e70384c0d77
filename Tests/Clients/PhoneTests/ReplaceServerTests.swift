import Bytes
import Crypto
import Glibc
import JSON
import TestSupport
import Testing

@testable import Phone

/// The replacement of the server's authority, with a real relay and a real phone.
@Suite("twoefay server", .timeLimit(.minutes(15)), .mayBlock) struct ReplaceServerTests {
    /// Counts the reloads of a relay, and waits for each.
    final class Reloads {
        private let relay: RunningRelay
        private var count = 0

        init(_ relay: RunningRelay) { self.relay = relay }

        func next() async throws {
            count += 1
            relay.signal(SIGHUP)
            try await relay.logged("event=daemon.reloaded", number: count)
        }
    }

    private static func json(_ relay: RunningRelay, _ arguments: String...) async throws -> JSONObject {
        try #require(try JSONReader.read(Array(try await relay.tool(arguments + ["--json"]).utf8)).object)
    }

    private static func missing(_ relay: RunningRelay) async throws -> Int64? {
        try await json(relay, "status")["pins"]?.object?["missing"]?.integer
    }

    /// Logs the user in, and returns the result of the website.
    private static func login(_ shop: CurlCaller, _ owner: Owner) async throws -> String? {
        let asked = try await shop.curl("POST", "/login", json: #"{"username":"alice"}"#)
        let challenge = try #require(asked["challenge"]?.string, "\(asked)")
        let number = try #require(asked["number"]?.string)
        let approved = try await owner.phone("approve", "--challenge", challenge, "--number", number)
        #expect(approved.status == 0, "\(approved.errors)")
        return try await shop.curl("POST", "/auth", json: #"{"challenge":"\#(challenge)"}"#)["login"]?.string
    }

    @Test func phoneFollowsTheServersAuthority() async throws {
        let relay = try await RunningRelay.start()
        var (shop, owner) = try await relay.enrolled()
        let reloads = Reloads(relay)
        let first = try owner.kept().pins
        #expect(first.count == 1)
        // The website keeps the root that it was given.
        try TextFile.write(try TextFile.bytes(relay.file("ca.pem")), to: relay.directory("root.pem"))
        shop.authorityPath = relay.directory("root.pem")
        let absent = try Owner()
        try absent.save(try owner.kept())

        let stated = try await Self.json(relay, "server", "pins")
        try relay.change { try $0.set("tls.pins", to: "pins.jwt") }
        try await reloads.next()
        #expect(try await Self.missing(relay) == 1)
        #expect(try await Self.login(shop, owner) == "success")
        let both = try owner.kept().pins
        #expect(both.first == first.first && both.count == 2)
        #expect(stated["pins"] == .array(both.map { .string(Base64URL.encode($0)) }))
        // The phone says with its next request that it has the pin.
        #expect(try await Self.login(shop, owner) == "success")
        try await relay.logged("event=pins.taken")
        #expect(try await Self.missing(relay) == 0)

        #expect(try await relay.operate("server", "finish").status == 4)
        _ = try await Self.json(relay, "server", "switch")
        try await reloads.next()
        #expect(try await Self.login(shop, owner) == "success")
        // A phone that knows only the former authority is still served.
        #expect(try await absent.phone("deny").status == 3)
        let fresh = try await relay.caller().curl("GET", "/health")
        #expect(fresh.status == 200)
        // A relay that was not reloaded yet could not prove another authority to a new phone.
        #expect(try await Self.pin(of: shop, "bob") == first[0])
        #expect(try await Self.pin(relay, activating: "bob") == first[0])

        _ = try await Self.json(relay, "server", "finish")
        try await reloads.next()
        shop.authorityPath = relay.file("ca.pem")
        #expect(try await Self.login(shop, owner) == "success")
        #expect(try owner.kept().pins == [both[1]])
        #expect(try await Self.missing(relay) == nil)
        #expect(try await Self.pin(of: shop, "carol") == both[1])
        #expect(try await Self.pin(relay, activating: "carol") == both[1])
        // A phone that was off during the whole replacement must be bound again.
        try absent.save(try absent.kept().withoutNext(first))
        let refused = try await absent.phone("deny")
        #expect(refused.status != 3 && refused.status != 0, "\(refused.errors)")
    }

    /// The pin that the activation of a new user names.
    private static func pin(of shop: CurlCaller, _ user: String) async throws -> [UInt8] {
        let registered = try await shop.curl("POST", "/register", json: #"{"username":"\#(user)"}"#)
        return try ActivationURI(try #require(registered["activation"]?.object?["uri"]?.string, "\(registered)")).pin
    }

    private static func pin(_ relay: RunningRelay, activating user: String) async throws -> [UInt8] {
        let made = try await json(relay, "user", "activate", user, "--website", "shop")
        return try ActivationURI(try #require(made["uri"]?.string, "\(made)")).pin
    }

    /// A relay that was taken over may have kept the announcement.
    @Test func phoneThatMissedAWithdrawnAnnouncementDoesNotTakeItLater() async throws {
        let relay = try await RunningRelay.start()
        let (_, owner) = try await relay.enrolled()
        let reloads = Reloads(relay)
        _ = try await Self.json(relay, "server", "pins")
        let announcement = try TextFile.read(relay.file("pins.jwt")).filter { !$0.isWhitespace }
        _ = try await Self.json(relay, "server", "pins", "--withdraw", "--yes")
        try relay.change { try $0.set("tls.pins", to: "pins.jwt") }
        try await reloads.next()
        let before = try owner.kept()
        _ = try before.repinned(by: announcement, at: before.madeAt)
        #expect(try await owner.phone("deny").status == 3)
        let after = try owner.kept()
        #expect(after.pins == before.pins)
        #expect(throws: PinStatement.Malformed.self) { try after.repinned(by: announcement, at: before.madeAt) }
    }

    @Test func finishWaitsForPhonesWithoutTheNewPin() async throws {
        let relay = try await RunningRelay.start()
        let (_, owner) = try await relay.enrolled()
        #expect(try await relay.operate("server", "switch").errors.contains("there is no next authority"))
        _ = try await Self.json(relay, "server", "pins")
        _ = try await Self.json(relay, "server", "switch")
        let refused = try await relay.operate("server", "finish")
        #expect(refused.status == 4 && refused.errors.contains("1 active phone has not taken"), "\(refused.errors)")
        #expect(try await Self.json(relay, "server", "finish", "--yes")["missing"] == 1)
        #expect(try await relay.operate("server", "finish").status == 4)
        #expect(try owner.kept().pins.count == 1)
    }

    @Test func withdrawnAuthorityIsNotUsed() async throws {
        let relay = try await RunningRelay.start()
        _ = try await Self.json(relay, "server", "pins")
        _ = try await Self.json(relay, "server", "pins", "--withdraw", "--yes")
        let refused = try await relay.operate("server", "switch")
        #expect(refused.status == 4 && refused.errors.contains("there is no next authority"), "\(refused.errors)")
    }

    /// Without a statement of the present authority, a reload keeps the pin.
    @Test func unannouncedAuthorityIsRefused() async throws {
        let relay = try await RunningRelay.start()
        let reloads = Reloads(relay)
        _ = try await Self.json(relay, "server", "pins")
        // All files are right: only the relay has not told its phones.
        _ = try await Self.json(relay, "server", "switch")
        relay.signal(SIGHUP)
        let line = try await relay.logged("event=daemon.reload ")
        #expect(line.contains("has a new key, but phones pin the old one"), "\(line)")
        try relay.change { try $0.set("tls.pins", to: "pins.jwt") }
        try await reloads.next()
    }

    @Test func serverCertificateIsRenewed() async throws {
        let relay = try await RunningRelay.start()
        let reloads = Reloads(relay)
        let key = try TextFile.read(relay.file("server.key"))
        let renewed = try await Self.json(relay, "server", "renew", "--keep-key", "--days", "30")
        #expect(try TextFile.read(relay.file("server.key")) == key)
        try await reloads.next()
        _ = try await Self.json(relay, "server", "renew")
        #expect(try TextFile.read(relay.file("server.key")) != key)
        try await reloads.next()
        #expect(try await relay.caller().curl("GET", "/health").status == 200)
        #expect(renewed["key_kept"] == true)
        let other = try await relay.operate("server", "renew", "--host", "other.example")
        #expect(other.status == 2 && other.errors.contains("the host of the origin"), "\(other.errors)")
        #expect(try await relay.operate("server", "renew", "--days", "826").status == 2)
    }
}

extension Enrolment {
    /// The phone as it was with these pins.
    fileprivate func withoutNext(_ pins: [[UInt8]]) -> Enrolment {
        var former = self
        former.pin = pins[0]
        former.nextPin = nil
        former.pinSequence = 0
        return former
    }
}
