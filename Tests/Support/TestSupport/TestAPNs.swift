import Bytes
import Crypto
import EventLoop
import FakePushServices
import Log
import World

/// A `FakePushService` in this process, over real TLS and HTTP/2, with its team.
public struct TestAPNs: Sendable {
    public let service: FakePushService
    private let team: FakeTeam
    private let directory: TemporaryDirectory
    public let log: MemorySink
    private let group: Group

    /// Ends the loop when the last copy of the service is released.
    private final class Group: Sendable {
        let loops: LoopGroup
        init(_ loops: LoopGroup) { self.loops = loops }
        deinit { loops.stopAndJoin() }
    }

    public static func start() async throws -> TestAPNs {
        let group = try LoopGroup.start(count: 1, time: SystemTime())
        let team = try FakeTeam(at: SystemTime().now())
        let sink = MemorySink()
        let service = FakePushService(
            loop: group.loops[0], tls: try team.tls(), topic: team.topic, authentication: team.tokenAuthentication,
            tokenUpdates: 1000, randomness: SystemRandomness(), log: Log(sink: sink))
        let directory = try TemporaryDirectory()
        try TextFile.write(try team.key.pem().reveal(), to: directory("AuthKey.p8"))
        try TextFile.write(try team.authority.certificatePEM(), to: directory("apple-ca.pem"))
        try await service.start()
        return TestAPNs(service: service, team: team, directory: directory, log: sink, group: Group(group))
    }

    public var key: P256PrivateKey { team.key }
    public var keyID: String { team.keyID }

    /// Sets this service as the push service in a relay's settings.
    public func set(in settings: inout String) throws {
        try settings.set("push.apns.endpoint", to: "https://127.0.0.1:\(service.port)")
        try settings.set("push.apns.topic", to: team.topic)
        try settings.set("push.apns.key", to: directory("AuthKey.p8"))
        try settings.set("push.apns.key_id", to: team.keyID)
        try settings.set("push.apns.team_id", to: team.teamID)
        try settings.set("push.apns.ca", to: directory("apple-ca.pem"))
    }
}
