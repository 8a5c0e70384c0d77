import Crypto
import DeliveryOutcomes
import EventLoop
import Glibc
import Log
import Pushes
import TLS
import World

/// Sends `count` pushes over one connection of one loop, `underway` at a time.
func runThroughput(port: UInt16, authority: String, count: Int, underway: Int, payload: [UInt8]) throws {
    var options = PushOptions()
    options.connections = 1
    options.capacity = max(underway, 1)
    let sender = try APNsSender(
        endpoint: PushEndpoint(host: "127.0.0.1", port: port), topic: "com.example.twoefay",
        credential: .token(
            key: try P256PrivateKey.generate(SystemRandomness()), keyID: "BENCHKEY12", teamID: "BENCHTEAM1"),
        trust: .pem(try contents(authority)), time: SystemTime(), randomness: SystemRandomness(),
        log: Log(minimum: .warning), options: options)
    let loop = try EventLoop(name: "sender", time: SystemTime())
    loop.post {
        let run = Throughput(sender, loop, count: count, underway: underway, payload: payload)
        // The connection and the first answer, which opens the other streams, are not measured.
        run.warmUp { run.start() }
    }
    loop.run()
}

private final class Throughput {
    private let sender: APNsSender
    private let loop: EventLoop
    private let count: Int
    private let underway: Int
    private let payload: [UInt8]
    private let expiresAt = SystemTime().now() + .seconds(300)
    private let token = String(repeating: "a1", count: 32)
    private var started = 0
    private var took: [Double] = []
    private var refused: [String: Int] = [:]
    private var beginning = 0.0
    private var processor = 0.0

    init(_ sender: APNsSender, _ loop: EventLoop, count: Int, underway: Int, payload: [UInt8]) {
        self.sender = sender
        self.loop = loop
        self.count = count
        self.underway = underway
        self.payload = payload
        took.reserveCapacity(count)
    }

    private func push(_ number: Int) -> APNsNotification {
        let digits = String(number, radix: 16)
        return APNsNotification(
            id: "01234567-89ab-cdef-0123-" + String(repeating: "0", count: 12 - digits.utf8.count) + digits,
            deviceToken: token, payload: payload, collapseID: "00112233445566778899aabbccddeeff", expiresAt: expiresAt)
    }

    func warmUp(_ then: @escaping () -> Void) {
        sender.send(push(count)) { outcome in
            guard outcome == .accepted(by: nil) else {
                complain("not accepted: \(outcome)")
                exit(1)
            }
            then()
        }
    }

    func start() {
        beginning = now()
        processor = processorTime()
        for _ in 0..<min(underway, count) { next() }
    }

    private func next() {
        guard started < count else { return }
        let push = push(started)
        started += 1
        let start = now()
        sender.send(push) { [self] outcome in
            took.append(now() - start)
            if outcome != .accepted(by: nil) { refused["\(outcome)", default: 0] += 1 }
            took.count == count ? finish() : next()
        }
    }

    private func finish() {
        let seconds = (now() - beginning) / 1e6
        let processor = processorTime() - processor
        guard refused.isEmpty else {
            complain("not all were accepted: \(refused)")
            exit(1)
        }
        took.sort()
        print(
            text(Double(count) / seconds), text(took.quantile(0.5)), text(took.quantile(0.99)),
            text(processor / Double(count)))
        exit(0)
    }
}
