import Bytes
import Crypto
import DeliveryOutcomes
import EventLoop
import Glibc
import JSON
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
    let expiresAt = SystemTime().now() + .seconds(300)
    let token = String(repeating: "a1", count: 32)
    try measure(count, underway) { number, completion in
        let digits = String(number, radix: 16)
        let push = APNsNotification(
            id: "01234567-89ab-cdef-0123-" + String(repeating: "0", count: 12 - digits.utf8.count) + digits,
            deviceToken: token, payload: payload, collapseID: "00112233445566778899aabbccddeeff",
            expiresAt: expiresAt)
        sender.send(push, completion: completion)
    }
}

/// Sends `count` messages to FCM, as `runThroughput` does to Apple.
func runFCMThroughput(port: UInt16, authority: String, count: Int, underway: Int) throws {
    var options = PushOptions()
    options.connections = 1
    options.capacity = max(underway, 1)
    let account: JSONObject = [
        "client_email": "bench@example.com", "project_id": "bench",
        "private_key": .string(String(decoding: try CertificateKey.generateRSA().reveal(), as: UTF8.self)),
        "token_uri": .string("https://127.0.0.1:\(port)/token"),
    ]
    let sender = try FCMSender(
        endpoint: PushEndpoint(host: "127.0.0.1", port: port),
        account: try FCMServiceAccount(json: Secret(JSONWriter.write(account))), trust: .pem(try contents(authority)),
        time: SystemTime(), randomness: SystemRandomness(), log: Log(minimum: .warning), options: options)
    let expiresAt = SystemTime().now() + .seconds(300)
    let token = "c1dEfGhIjKlMnOpQrStUvW:APA91b" + String(repeating: "x_-9", count: 33)
    let data: JSONObject = [
        "title": "Example Bank", "loc-key": "TWOEFAY_LOGIN_SERVICE_PLACE_IP",
        "loc-args": #"["Online banking","Vienna, Austria","203.0.113.77"]"#,
        "challenge": "00112233445566778899aabbccddeeff",
    ]
    try measure(count, underway) { number, completion in
        sender.send(
            FCMMessage(id: String(number), token: token, data: data, expiresAt: expiresAt), completion: completion)
    }
}

private func measure(
    _ count: Int, _ underway: Int,
    _ send: @escaping @Sendable (Int, @escaping (DeliveryOutcome) -> Void) -> Void
) throws {
    let loop = try EventLoop(name: "sender", time: SystemTime())
    loop.post {
        let run = Throughput(count: count, underway: underway, send: send)
        // The connection and the first answer, which opens the other streams, are not measured.
        run.warmUp { run.start() }
    }
    loop.run()
}

private final class Throughput {
    private let count: Int
    private let underway: Int
    private let send: (Int, @escaping (DeliveryOutcome) -> Void) -> Void
    private var started = 0
    private var took: [Double] = []
    private var refused: [String: Int] = [:]
    private var beginning = 0.0
    private var processor = 0.0

    init(count: Int, underway: Int, send: @escaping (Int, @escaping (DeliveryOutcome) -> Void) -> Void) {
        self.count = count
        self.underway = underway
        self.send = send
        took.reserveCapacity(count)
    }

    func warmUp(_ then: @escaping () -> Void) {
        send(count) { outcome in
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
        let number = started
        started += 1
        let start = now()
        send(number) { [self] outcome in
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
