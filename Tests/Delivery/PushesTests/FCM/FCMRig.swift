import Crypto
import DeliveryOutcomes
import EventLoop
import FakePushServices
import JSON
import Log
import Pushes
import TLS
import TestSupport
import World

/// A sender and FCM on separate loops, with real TLS and HTTP/2 between them.
final class FCMRig: Sendable {
    let fcm: TestFCM
    let sender: FCMSender
    let sink: ObservedSink
    let loops: [EventLoop]

    private init(_ fcm: TestFCM, _ loops: [EventLoop], options: PushOptions, observer: (any PushObserver)?) throws {
        self.fcm = fcm
        self.loops = loops
        sink = ObservedSink()
        sender = try FCMSender(
            endpoint: PushEndpoint(host: "127.0.0.1", port: fcm.service.port),
            account: try FCMServiceAccount(json: fcm.project.account(origin: fcm.origin)),
            trust: .pem(try fcm.project.team.authority.certificatePEM()), time: SystemTime(),
            randomness: SystemRandomness(), log: Log(minimum: .debug, sink: sink), options: options,
            observer: observer)
    }

    static func with(
        keeping: RecordingLimits = .everything, options: PushOptions = .patient,
        observer: (any PushObserver)? = nil, _ body: (FCMRig) async throws -> Void
    ) async throws {
        let fcm = try await TestFCM.start(keeping: keeping)
        let group = try LoopGroup.start(count: 2, time: SystemTime())
        defer { group.stopAndJoin() }
        let rig = try FCMRig(fcm, group.loops, options: options, observer: observer)
        try await body(rig)
        rig.sender.close()
        for loop in rig.loops { await loop.perform {} }
        await fcm.service.stop()
    }

    /// Returns a new message that has not expired.
    ///
    /// - Parameter challenge: 32 hexadecimal digits, by which the service counts deliveries.
    func message(
        _ prefix: String = "", challenge: String = UniqueText.next(), lives: Duration = .seconds(300),
        attempts: Int = 0
    ) -> FCMMessage {
        FCMMessage(
            id: challenge, token: TestFCM.token(prefix), data: ["challenge": .string(challenge), "title": "The Shop"],
            expiresAt: SystemTime().now() + lives, attempts: attempts)
    }

    func send(_ message: FCMMessage, on loop: Int = 0) async -> DeliveryOutcome {
        await loops[loop].perform { [sender] in await sender.send(message) }
    }

    func begin(_ message: FCMMessage, on loop: Int = 0) async -> Begun {
        let begun = Begun()
        await loops[loop].perform { [sender] in sender.send(message) { begun.came($0) } }
        return begun
    }

    /// The number of log lines of this event.
    func count(_ event: String) -> Int { sink.lines.count { ObservedSink.isOf(event, $0) } }
}
