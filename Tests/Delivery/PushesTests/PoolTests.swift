import Crypto
import DeliveryOutcomes
import EventLoop
import FakePushServices
import HTTP2
import Pushes
import Synchronization
import TestSupport
import Testing
import World

/// The names that were resolved.
private final class Names: Sendable {
    private let names = Mutex<[String]>([])
    var all: [String] { names.withLock { $0 } }
    func add(_ name: String) { names.withLock { $0.append(name) } }
}

/// Several connections, with their streams and their ends, over real TLS and HTTP/2.
@Suite(.serialized) struct PoolTests {
    private static var two: PushOptions {
        var options = PushOptions.patient
        options.connections = 2
        return options
    }

    private static func connected(_ rig: Rig, to host: String) -> Int {
        rig.sink.lines.count { ObservedSink.isOf("apns.connected", $0) && $0.contains("address=\(host):") }
    }

    /// Sends pushes at once from one loop, and returns their outcomes.
    private func send(_ count: Int, _ rig: Rig, from first: UInt64 = 0) async -> [DeliveryOutcome] {
        await send((0..<UInt64(count)).map { first + $0 }, rig)
    }

    private func send(_ numbers: [UInt64], _ rig: Rig) async -> [DeliveryOutcome] {
        var begun: [Begun] = []
        for number in numbers { begun.append(await rig.begin(rig.push(number: number))) }
        var outcomes: [DeliveryOutcome] = []
        for one in begun { outcomes.append(await one.outcome()) }
        #expect(begun.allSatisfy { $0.outcomes.count == 1 })
        return outcomes
    }

    @Test func poolUsesDifferentAddresses() async throws {
        var options = Self.two
        let names = Names()
        options.resolver = { host, port in
            names.add(host)
            return .success(["127.0.0.1", "127.0.0.2"].compactMap { SocketAddress(host: $0, port: port) })
        }
        try await Rig.with(names: ["localhost"], options: options, host: "localhost") { rig in
            _ = try await rig.apple.start(host: "0.0.0.0")
            await rig.loops[1].perform { rig.sender.connectEagerly() }
            await rig.sink.lines(of: "apns.connected", count: 2)
            #expect(Self.connected(rig, to: "127.0.0.1") == 1)
            #expect(Self.connected(rig, to: "127.0.0.2") == 1)
            #expect(names.all == ["localhost", "localhost"], "resolved for every connection")
            #expect(await rig.send(rig.push()) == .accepted(by: nil))
        }
    }

    @Test func lossOfOneConnectionLeavesTheOther() async throws {
        try await Rig.with(options: Self.two) { rig in
            await rig.loops[1].perform { rig.sender.connectEagerly() }
            await rig.sink.lines(of: "apns.connected", count: 2)
            let first = try #require(await rig.apple.connections.min())
            await rig.apple.cut(connection: first)
            await rig.sink.lines(of: "apns.disconnected", count: 1)
            #expect(await rig.send(rig.push()) == .accepted(by: nil))
            await rig.sink.lines(of: "apns.connected", count: 3)
            #expect(await rig.send(rig.push()) == .accepted(by: nil))
        }
    }

    @Test func halfOpenConnectionIsDetectedOnUse() async throws {
        var options = Self.two
        options.quiet = .zero
        options.pingTimeout = .seconds(2)
        options.userTimeout = .seconds(60)
        try await Rig.with(options: options) { rig in
            await rig.loops[1].perform { rig.sender.connectEagerly() }
            await rig.sink.lines(of: "apns.connected", count: 2)
            for connection in await rig.apple.connections { await rig.apple.freeze(connection: connection) }
            #expect(await rig.send(rig.push(lives: .seconds(60))) == .ambiguous("no answer to a PING"))
            // The other connection is checked when it is used, and then both are replaced.
            for _ in 0..<2 {
                if await rig.send(rig.push(lives: .seconds(60))) == .accepted(by: nil) { return }
            }
            Issue.record("a dead connection was used again")
        }
    }

    @Test func overdueAnswerTriggersAPing() async throws {
        var options = PushOptions.patient
        options.suspicion = .milliseconds(200)
        options.pingTimeout = .seconds(5)
        try await Rig.with(options: options) { rig in
            #expect(await rig.send(rig.push()) == .accepted(by: nil))
            await rig.apple.freeze()
            #expect(await rig.send(rig.push(lives: .seconds(60))) == .ambiguous("no answer to a PING"))
            #expect(await rig.send(rig.push()) == .accepted(by: nil))
        }
    }

    @Test func goAwayBeforeSettingsDoesNotBlockThePool() async throws {
        try await Rig.with { rig in
            rig.apple.setConnectionBehavior(.goAway)
            #expect(await rig.send(rig.push()) == .accepted(by: nil))
            #expect(rig.count("apns.connected") == 1)
            #expect(rig.count("apns.disconnected") == 1)
        }
    }

    @Test func changedStreamLimitIsFollowed() async throws {
        try await Rig.with(options: Self.two) { rig in
            await rig.apple.injectFaults(FaultPlan(streams: .changing([1, 1000, 3, nil], every: 50)))
            let outcomes = await send(600, rig)
            #expect(outcomes.allSatisfy { $0 == .accepted(by: nil) }, "\(outcomes.filter { $0 != .accepted(by: nil) })")
            #expect(rig.apple.deliveries.accepted == 600)
            #expect(rig.apple.deliveries.twice.isEmpty)
            #expect(rig.count("apns.connected") <= 2, "no connection was lost by a stream too many")
        }
    }

    @Test func oneStreamIsUsedUntilTheTokenIsAccepted() async throws {
        try await Rig.with { rig in
            await rig.apple.injectFaults(FaultPlan(streams: .afterProof(1000)))
            let outcomes = await send(100, rig)
            #expect(outcomes.allSatisfy { $0 == .accepted(by: nil) })
            #expect(rig.sender.snapshot().streamLimit == 1000)
        }
    }

    @Test func burstOfPushesLosesNothing() async throws {
        var options = Self.two
        options.capacity = 5000
        try await Rig.with(options: options) { rig in
            await rig.apple.injectFaults(
                FaultPlan(
                    rules: [
                        .every(300, .goAway(replays: 3)), .every(170, .reset(.refusedStream, accepts: false)),
                        .every(110, .refuse(.serviceUnavailable)),
                    ], streams: .changing([1, 1000], every: 40)))
            // A push can meet two faults in a row. Then it was not delivered, and is sent again.
            var waiting = Array(UInt64(0)..<1500)
            for _ in 0..<100 where !waiting.isEmpty {
                let outcomes = await send(waiting, rig)
                waiting = zip(waiting, outcomes).filter { $1 != .accepted(by: nil) }.map(\.0)
                let others = outcomes.filter { $0 != .accepted(by: nil) }
                #expect(
                    others.allSatisfy {
                        switch $0 {
                        case .retry, .unavailable: true
                        default: false
                        }
                    }, "\(others)")
            }
            #expect(waiting.isEmpty)
            #expect(rig.apple.deliveries.accepted == 1500)
            #expect(rig.apple.deliveries.twice.isEmpty)
        }
    }

    @Test func expiredQueuedPushIsNotSent() async throws {
        var limits = FakePushService.limits
        limits.streams = 1
        limits.drain = .milliseconds(1)
        try await Rig.with(limits: limits) { rig in
            rig.apple.script("5e", .silence)
            let first = await rig.begin(rig.push("5e", lives: .seconds(6)))
            _ = try await rig.apple.nextRequest()
            let short = await rig.begin(rig.push(number: 1, lives: .seconds(2)))
            let long = await rig.begin(rig.push(number: 2))
            #expect(rig.sender.snapshot().inFlight == 1)
            #expect(await short.outcome() == .retry(after: .seconds(1), reason: "no stream in time"))
            #expect(await first.outcome() == .ambiguous("no answer in time"))
            #expect(await long.outcome() == .accepted(by: nil), "its stream was given up")
            #expect(rig.apple.deliveries.accepted == 1)
        }
    }

    @Test func certificateReplacementLosesNoPush() async throws {
        try await Rig.with(.certificate, options: Self.two) { rig in
            var begun: [Begun] = []
            for number in 0..<300 as Range<UInt64> {
                begun.append(await rig.begin(rig.push(number: number)))
                if number == 150 {
                    let next = try rig.team.issueProvider(at: SystemTime().now())
                    try rig.sender.replace(
                        credential: .certificate(chainPEM: try next.certificatePEM(), key: try next.keyPEM()))
                }
            }
            for one in begun { #expect(await one.outcome() == .accepted(by: nil)) }
            #expect(rig.apple.deliveries.accepted == 300)
            #expect(rig.apple.deliveries.twice.isEmpty)
            #expect(rig.count("apns.connected") >= 2)
        }
    }

    @Test func keyCanBeReplacedAndRestored() async throws {
        try await Rig.with { rig in
            #expect(await rig.send(rig.push()) == .accepted(by: nil))
            let other = try P256PrivateKey.generate()
            let (keyID, teamID) = (rig.team.keyID, rig.team.teamID)
            try rig.sender.replace(credential: .token(key: other, keyID: keyID, teamID: teamID))
            #expect(await rig.send(rig.push()) == .misconfigured(.service, reason: "InvalidProviderToken"))
            #expect(rig.sender.fault == "InvalidProviderToken")
            try rig.sender.replace(credential: .token(key: rig.team.key, keyID: keyID, teamID: teamID))
            #expect(rig.sender.fault == nil, "what was held against the other key does not count")
            #expect(await rig.send(rig.push()) == .accepted(by: nil))
        }
    }

    @Test func identicalKeyKeepsTheConnections() async throws {
        try await Rig.with { rig in
            #expect(await rig.send(rig.push()) == .accepted(by: nil))
            let again = try P256PrivateKey(pem: try rig.team.key.pem())
            try rig.sender.replace(
                credential: .token(key: again, keyID: rig.team.keyID, teamID: rig.team.teamID))
            #expect(await rig.send(rig.push()) == .accepted(by: nil))
            #expect(rig.count("apns.connected") == 1)
            let tokens = [try await rig.apple.next().providerToken, try await rig.apple.next().providerToken]
            #expect(tokens[0] == tokens[1])
        }
    }

    @Test func invalidCertificateIsRefused() async throws {
        try await Rig.with { rig in
            let nonsense = Array("nonsense".utf8)
            #expect(throws: (any Error).self) {
                try rig.sender.replace(credential: .certificate(chainPEM: nonsense, key: try rig.team.key.pem()))
            }
            #expect(await rig.send(rig.push()) == .accepted(by: nil))
        }
    }
}
