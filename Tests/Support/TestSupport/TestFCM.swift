import Bytes
import Crypto
import EventLoop
import FakePushServices
import Log
import World

/// A push service in this process that behaves as FCM, over real TLS and HTTP/2, with its project.
public struct TestFCM: Sendable {
    public let service: FakePushService
    public let project: FakeProject
    private let directory: TemporaryDirectory
    private let group: Group

    /// Ends the loop when the last copy of the service is released.
    private final class Group: Sendable {
        let loops: LoopGroup
        init(_ loops: LoopGroup) { self.loops = loops }
        deinit { loops.stopAndJoin() }
    }

    public static func start(keeping: RecordingLimits = .everything) async throws -> TestFCM {
        let group = try LoopGroup.start(count: 1, time: SystemTime())
        let project = try FakeProject(at: SystemTime().now())
        let service = FakePushService(
            loop: group.loops[0], tls: try project.tls(), project: project, keeping: keeping,
            randomness: SystemRandomness(), log: Log(minimum: .error))
        let directory = try TemporaryDirectory()
        try await service.start()
        let fcm = TestFCM(service: service, project: project, directory: directory, group: Group(group))
        try TextFile.write(project.team.authority.certificatePEM(), to: fcm.authority)
        try TextFile.write(project.account(origin: fcm.origin).reveal(), to: fcm.account)
        return fcm
    }

    public var origin: String { "https://127.0.0.1:\(service.port)" }
    /// The file of the service account.
    public var account: String { directory("account.json") }
    public var authority: String { directory("fcm-ca.pem") }

    /// Sets this service as FCM in a relay's settings.
    public func set(in settings: inout String) throws {
        try settings.set("push.fcm.endpoint", to: origin)
        try settings.set("push.fcm.account", to: account)
        try settings.set("push.fcm.ca", to: authority)
    }

    /// Returns a registration token in the form of today's.
    public static func token(_ prefix: String = "") -> String {
        let random = Base64URL.encode(SystemRandomness().bytes(105))
        return prefix + random.prefix(22) + ":APA91b" + random.dropFirst(22)
    }
}
