import Bytes
import Crypto
import DeliveryOutcomes
import EventLoop
import FakePushServices
import HTTP2
import Log
import Pushes
import Synchronization
import TLS
import TestSupport
import Testing
import World

extension PushOptions {
    /// Options with long timeouts, for a busy machine.
    static var patient: PushOptions {
        var options = PushOptions()
        options.connections = 1
        options.stagger = .zero
        options.deadline = .seconds(120)
        options.suspicion = .seconds(60)
        options.connectTimeout = .seconds(60)
        options.pingTimeout = .seconds(60)
        return options
    }
}

/// A push that was given to the sender, with its outcomes.
final class Begun: Sendable {
    private struct State {
        var outcomes: [DeliveryOutcome] = []
        var waiting: CheckedContinuation<DeliveryOutcome, Never>?
    }

    private let state = Mutex(State())

    /// All outcomes. There must be exactly one.
    var outcomes: [DeliveryOutcome] { state.withLock { $0.outcomes } }

    func came(_ outcome: DeliveryOutcome) {
        let waiting = state.withLock { state in
            state.outcomes.append(outcome)
            defer { state.waiting = nil }
            return state.waiting
        }
        waiting?.resume(returning: outcome)
    }

    /// Waits for the outcome; only one caller may wait.
    func outcome() async -> DeliveryOutcome {
        await withCheckedContinuation { continuation in
            let there = state.withLock { state in
                if state.outcomes.isEmpty { state.waiting = continuation }
                return state.outcomes.first
            }
            if let there { continuation.resume(returning: there) }
        }
    }
}

/// A sender and a push service on separate loops, with real TLS and HTTP/2 between them.
final class Rig: Sendable {
    enum Kind: Sendable { case token, certificate }

    let team: FakeTeam
    let apple: FakePushService
    let sender: APNsSender
    let sink: ObservedSink
    let senderLog: Log
    let loops: [EventLoop]
    let time: any TimeSource

    private init(
        _ loops: [EventLoop], _ kind: Kind, _ time: any TimeSource, _ limits: ServerLimits, _ tokenUpdates: Int,
        trusts: Bool, names: [String], options: PushOptions, host: String, observer: (any PushObserver)?
    ) async throws {
        self.loops = loops
        self.time = time
        sink = ObservedSink()
        let log = Log(minimum: .debug, sink: sink)
        senderLog = log
        let now = SystemTime().now()
        team = try FakeTeam(names: names, at: now)
        apple = FakePushService(
            loop: loops[0], tls: try team.tls(), topic: team.topic,
            authentication: kind == .token ? team.tokenAuthentication : .certificate, tokenUpdates: tokenUpdates,
            limits: limits, randomness: SystemRandomness(), log: log)
        let port = try await apple.start()
        let credential: APNsCredential
        switch kind {
        case .token: credential = .token(key: team.key, keyID: team.keyID, teamID: team.teamID)
        case .certificate:
            let provider = try team.issueProvider(at: now)
            credential = .certificate(chainPEM: try provider.certificatePEM(), key: try provider.keyPEM())
        }
        let trust = trusts ? team.authority : try FakeTeam(at: now).authority
        sender = try APNsSender(
            endpoint: PushEndpoint(host: host, port: port), topic: team.topic, credential: credential,
            trust: .pem(try trust.certificatePEM()), time: time, randomness: SystemRandomness(), log: log,
            options: options, observer: observer)
    }

    static func with(
        _ kind: Kind = .token, time: any TimeSource = SystemTime(), limits: ServerLimits = FakePushService.limits,
        tokenUpdates: Int = 50, trusts: Bool = true, names: [String] = ["127.0.0.1"],
        options: PushOptions = .patient, host: String = "127.0.0.1", observer: (any PushObserver)? = nil,
        _ body: (Rig) async throws -> Void
    ) async throws {
        let group = try LoopGroup.start(count: 3, time: SystemTime())
        defer { group.stopAndJoin() }
        let rig = try await Rig(
            group.loops, kind, time, limits, tokenUpdates, trusts: trusts, names: names, options: options, host: host,
            observer: observer)
        try await body(rig)
        rig.sender.close()
        await rig.loops[1].perform {}
        await rig.apple.stop()
    }

    /// Returns a new push that has not expired.
    func push(
        _ token: String = Sample.token, number: UInt64 = .random(in: 0...UInt64.max),
        environment: APNsNotification.Environment = .production, lives: Duration = .seconds(300)
    ) -> APNsNotification {
        let digits = String(number & 0xffff_ffff_ffff, radix: 16)
        return Sample.push(
            id: "00000000-0000-0000-0000-" + String(repeating: "0", count: 12 - digits.utf8.count) + digits,
            token: token,
            environment: environment, expiresAt: time.now() + lives)
    }

    func send(_ push: APNsNotification, on loop: Int = 1) async -> DeliveryOutcome {
        await loops[loop].perform { [sender] in await sender.send(push) }
    }

    /// Gives a push to the sender. Returns when the sender has sent or queued it.
    func begin(_ push: APNsNotification, on loop: Int = 1) async -> Begun {
        let begun = Begun()
        await loops[loop].perform { [sender] in sender.send(push) { begun.came($0) } }
        // The previous turn has ended when this one runs, so a later snapshot shows its result.
        await loops[loop].perform {}
        return begun
    }

    /// The number of log lines of this event.
    func count(_ event: String) -> Int { sink.lines.count { ObservedSink.isOf(event, $0) } }
}
