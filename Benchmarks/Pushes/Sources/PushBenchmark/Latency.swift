import Bytes
import Couriers
import Crypto
import DeliveryOutcomes
import Domain
import EventLoop
import Glibc
import Log
import Pushes
import Relay
import Synchronization
import TLS
import World

/// Measures the time from the relay's call to the push's bytes at the other end of the connection.
/// In turn with it, the same loop writes as many bare bytes to the same reader; the difference is
/// the courier's cost. The connection is idle and open each time. `port` is the port of a sink; a
/// thread between it and the sender observes the bytes.
func runLatency(port: UInt16, authority: String, rounds: Int) throws {
    let tap = try Tap(to: port)
    var options = PushOptions()
    options.connections = 1
    let sender = try APNsSender(
        endpoint: PushEndpoint(host: "127.0.0.1", port: tap.port), topic: "com.example.twoefay",
        credential: .token(
            key: try P256PrivateKey.generate(SystemRandomness()), keyID: "BENCHKEY12", teamID: "BENCHTEAM1"),
        trust: .pem(try contents(authority)), time: SystemTime(), randomness: SystemRandomness(),
        log: Log(minimum: .warning), options: options)
    let courier = APNsCourier(sender)
    let group = try LoopGroup.start(count: 1, time: SystemTime())
    let loop = group.loops[0]
    let bare = try tap.bareConnection()
    let done = Semaphore()

    func pushed() -> (took: Double, bytes: Int) {
        let start = Atomic<UInt64>(0)
        tap.listen()
        loop.post {
            loop.spawn {
                let push = samplePush()
                start.store(UInt64(now() * 1000), ordering: .releasing)
                let outcome = await courier.send(push)
                guard outcome == .accepted(by: nil) else {
                    complain("not accepted: \(outcome)")
                    exit(1)
                }
                done.signal()
            }
        }
        let seen = tap.seen()
        done.wait()
        return (seen.at - Double(start.load(ordering: .acquiring)) / 1000, seen.bytes)
    }

    func written(_ bytes: Int) -> Double {
        let start = Atomic<UInt64>(0)
        let buffer = [UInt8](repeating: 0x78, count: bytes)
        tap.listen()
        loop.post {
            start.store(UInt64(now() * 1000), ordering: .releasing)
            _ = buffer.withUnsafeBytes { write(bare, $0.baseAddress, $0.count) }
            done.signal()
        }
        let seen = tap.seen()
        done.wait()
        return seen.at - Double(start.load(ordering: .acquiring)) / 1000
    }

    for _ in 0..<50 { _ = pushed() }
    var pushes: [Double] = []
    var writes: [Double] = []
    var size = 0
    for _ in 0..<rounds {
        let push = pushed()
        size = push.bytes
        pushes.append(push.took)
        writes.append(written(size))
        // Wait until the answer has passed and the loop sleeps again.
        usleep(300)
    }
    pushes.sort()
    writes.sort()
    print(
        "\(rounds) rounds in turn, \(size) bytes each, an idle connection; microseconds from the call to the other end")
    print("                 p50      p99")
    print("push        \(column(pushes.quantile(0.5))) \(column(pushes.quantile(0.99)))")
    print("bare write  \(column(writes.quantile(0.5))) \(column(writes.quantile(0.99)))")
    print(
        "added       \(column(pushes.quantile(0.5) - writes.quantile(0.5))) "
            + "\(column(pushes.quantile(0.99) - writes.quantile(0.99)))")
    exit(0)
}

private func column(_ value: Double) -> String {
    let text = text(value)
    return String(repeating: " ", count: max(0, 8 - text.utf8.count)) + text
}

private func samplePush() -> Push {
    guard let id = OutboxEntryID(SystemRandomness().bytes(16)),
        let challenge = ChallengeID(SystemRandomness().bytes(16)), let device = DeviceID(SystemRandomness().bytes(16)),
        let user = UserID(SystemRandomness().bytes(16))
    else { preconditionFailure("16 bytes are an id") }
    let now = SystemTime().now()
    return Push(
        id: id, challenge: challenge, user: user, device: device, deviceToken: String(repeating: "a1", count: 32),
        environment: .production, detail: .full, website: "Example Bank", service: "Online banking",
        ip: "203.0.113.77", place: "Vienna, Austria", askedAt: now, expiresAt: now + .seconds(300))
}
