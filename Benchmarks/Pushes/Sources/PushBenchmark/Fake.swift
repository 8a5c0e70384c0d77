import Bytes
import Crypto
import EventLoop
import FakePushServices
import Glibc
import HTTP2
import Log
import World

/// The push service of a storm.
enum StormService: String, Sendable {
    case apns, fcm

    /// Returns a device token in the form of the service.
    func token() -> String {
        let random = Hex.encode(SystemRandomness().bytes(32))
        return self == .apns ? random : random.prefix(22) + ":APA91b" + random
    }
}

/// Runs the service of the storm in its own process, so that its memory is not part of the relay's.
/// It sends GOAWAY every 5,000 pushes, resets one stream in 1,000 (half of them after it accepted
/// the push), answers 503 to one in 500, and changes its stream limit between 1 and 1,000. FCM also
/// refuses the access token of one push in 5,000. It writes the data that a relay needs into the
/// directory, and runs until its input ends. Then it writes the pushes that it accepted more than
/// once: by their `apns-id`, or, for FCM, by their challenge.
func runFake(directory: String, _ service: StormService) throws {
    let loop = try EventLoop(name: "fake", time: SystemTime())
    loop.post {
        loop.spawn {
            do {
                try await serve(directory, service, on: loop)
                exit(0)
            } catch {
                complain("fake: \(error)")
                exit(1)
            }
        }
    }
    loop.run()
}

private func serve(_ directory: String, _ kind: StormService, on loop: EventLoop) async throws {
    let team = try FakeTeam(at: SystemTime().now())
    let (randomness, log) = (SystemRandomness(), Log(minimum: .warning))
    let project = try FakeProject(team: team, keyPEM: CertificateKey.generateRSA())
    let service =
        switch kind {
        case .apns:
            FakePushService(
                loop: loop, tls: try team.tls(), topic: team.topic, authentication: team.tokenAuthentication,
                keeping: .counts, randomness: randomness, log: log)
        case .fcm:
            FakePushService(
                loop: loop, tls: try team.tls(), project: project, keeping: .counts, randomness: randomness, log: log)
        }
    var rules: [FaultPlan.Rule] = [
        .every(5000, .goAway(replays: 3)), .every(2000, .reset(.internalError, accepts: true)),
        .every(2000, .reset(.internalError, accepts: false)),
        .every(500, kind == .apns ? .refuse(.serviceUnavailable) : .refuse(.unavailable, retryAfter: .seconds(2))),
    ]
    if kind == .fcm { rules.append(.every(5000, .refuse(.unauthenticated))) }
    await service.injectFaults(FaultPlan(rules: rules, streams: .changing([1000, 1], every: 500)))
    let port = try await service.start()
    try save(try team.authority.certificatePEM(), to: directory + "/authority.pem")
    try save(try team.key.pem().reveal(), to: directory + "/key.p8")
    try save(project.account(origin: "https://127.0.0.1:\(port)").reveal(), to: directory + "/account.json")
    try save(Array("\(port) \(team.topic) \(team.keyID) \(team.teamID)\n".utf8), to: directory + "/ready")
    let ended = try WorkerThread(name: "input")
    await withUnsafeContinuation { continuation in
        ended.post {
            while getchar() != EOF {}
            continuation.resume()
        }
    }
    let deliveries = service.deliveries
    let lines = ["accepted \(deliveries.accepted)", "ids \(deliveries.ids)"] + deliveries.twice.map { "twice \($0)" }
    try save(Array((lines.joined(separator: "\n") + "\n").utf8), to: directory + "/deliveries")
}

func save(_ bytes: [UInt8], to path: String) throws {
    guard let file = fopen(path, "w") else { throw Fault("cannot write \(path)") }
    defer { fclose(file) }
    guard fwrite(bytes, 1, bytes.count, file) == bytes.count else { throw Fault("cannot write \(path)") }
}
