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
import Storage
import Synchronization
import TLS
import World

/// Asks `count` users, `underway` at a time, each by a push through the service of `runFake`.
/// Prints the memory meanwhile, and writes the ids of pushes with an unknown outcome.
func runStorm(directory: String, count: Int, underway: Int, _ service: StormService) throws {
    let loop = try EventLoop(name: "storm", time: SystemTime())
    loop.post {
        loop.spawn {
            do {
                try await Storm(directory, count, service, on: loop).run(underway)
                exit(0)
            } catch {
                complain("storm: \(error)")
                exit(1)
            }
        }
    }
    loop.run()
}

/// A push courier between the relay and its courier. It changes nothing, but records the outcomes.
private final class Watched: PushCourier {
    private struct State {
        var sending = 0
        var outcomes: [String: Int] = [:]
        var ambiguous: Set<String> = []
    }

    private let courier: any PushCourier
    private let service: StormService
    private let state = Mutex(State())

    init(_ courier: any PushCourier, _ service: StormService) {
        self.courier = courier
        self.service = service
    }

    func serves(_ platform: Platform, pushToken: String) -> Bool { courier.serves(platform, pushToken: pushToken) }

    func send(_ push: Push) async -> DeliveryOutcome {
        let outcome = await courier.send(push)
        state.withLock { state in
            switch outcome {
            case .accepted: state.outcomes["accepted", default: 0] += 1
            case .ambiguous:
                state.outcomes["ambiguous", default: 0] += 1
                state.ambiguous.insert(service == .apns ? push.id.text : push.challenge.text)
            case .retry(_, let reason), .unavailable(_, let reason):
                state.outcomes["later: \(reason)", default: 0] += 1
            case .unregistered(_, let reason), .misconfigured(_, let reason), .declined(let reason):
                state.outcomes[reason, default: 0] += 1
            }
        }
        return outcome
    }

    var outcomes: [String: Int] { state.withLock { $0.outcomes } }
    var ambiguous: Set<String> { state.withLock { $0.ambiguous } }
}

/// The counts of the events that the sender observed.
private final class Weather: PushObserver {
    private let counts = Mutex<[String: Int]>([:])

    private func note(_ what: String) { counts.withLock { $0[what, default: 0] += 1 } }

    func answered(status: Int, reason: String, after duration: Duration) { note("answer \(status) \(reason)") }
    func unanswered(_ why: PushUnansweredReason, after duration: Duration) { note("no answer: \(why.rawValue)") }
    func goAway(host: String, reason: String) { note("GOAWAY") }
    func connected(host: String) { note("connection") }

    var seen: [String: Int] { counts.withLock { $0 } }
}

private final class Storm: Sendable {
    private let directory: String
    private let count: Int
    private let service: StormService
    private let loop: EventLoop
    private let store: Store
    private let push: Watched
    private let weather = Weather()
    private let relay: Relay
    private let next = Atomic<Int>(0)

    init(_ directory: String, _ count: Int, _ service: StormService, on loop: EventLoop) throws {
        self.directory = directory
        self.count = count
        self.service = service
        self.loop = loop
        let log = Log(minimum: .error)
        let time = SystemTime()
        let ready = String(decoding: try contents(directory + "/ready"), as: UTF8.self)
            .split(whereSeparator: \.isWhitespace).map(String.init)
        guard ready.count == 4, let port = UInt16(ready[0]) else { throw Fault("the service is not ready") }
        let trust = TLSClientContext.Roots.pem(try contents(directory + "/authority.pem"))
        let endpoint = PushEndpoint(host: "127.0.0.1", port: port)
        let courier: any PushCourier =
            switch service {
            case .apns:
                APNsCourier(
                    try APNsSender(
                        endpoint: endpoint, topic: ready[1],
                        credential: .token(
                            key: try P256PrivateKey(pem: Secret(try contents(directory + "/key.p8"))),
                            keyID: ready[2], teamID: ready[3]),
                        trust: trust, time: time, randomness: SystemRandomness(), log: log, observer: weather))
            case .fcm:
                FCMCourier(
                    try FCMSender(
                        endpoint: endpoint,
                        account: try FCMServiceAccount(json: Secret(try contents(directory + "/account.json"))),
                        trust: trust, time: time, randomness: SystemRandomness(), log: log, observer: weather))
            }
        push = Watched(courier, service)
        store = try Store.open(
            try StorageURL("sqlite:" + directory + "/storm.db"), schema: .migrate, time: time, log: log)
        let master = Secret(SystemRandomness().bytes(32))
        relay = Relay(
            settings: Relay.Settings(
                origin: "https://127.0.0.1:8080", pin: SHA256.hash([1]), policy: Policy(), isAlone: true),
            store: store, push: push,
            phones: try CertificateAuthority.create(commonName: "phones", days: 10, at: time.now()),
            keys: RelayKeys(masterKey: master), sealer: try Sealer(keys: [Sealer.Key(id: "1", key: master)]),
            time: time,
            randomness: SystemRandomness(), log: log, metrics: RelayMetrics(),
            spawn: { [loop] work in loop.spawn(work) })
    }

    func run(_ underway: Int) async throws {
        let website = try await website()
        let tokens = try await users(of: website, underway)
        await relay.runHeartbeat()
        attend()
        print("users: \(tokens.count); resident \(resident() / 1024) MiB")
        let start = now()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<underway {
                group.addTask { [self] in
                    while true {
                        let number = next.add(1, ordering: .relaxed).oldValue
                        guard number < tokens.count else { return }
                        await ask(tokens[number], website)
                        if (number + 1).isMultiple(of: count / 10) {
                            print("asked: \(number + 1); resident \(resident() / 1024) MiB")
                        }
                    }
                }
            }
        }
        let asked = (now() - start) / 1e6
        // Retries are in the outbox, so every push has ended when none is left.
        while try await pushesLeft() > 0 { await loop.sleep(for: .milliseconds(200)) }
        print("resident \(resident() / 1024) MiB at the end")
        print(
            "logins asked a second: \(text(Double(count) / asked, 0)); until the last push had its end \(text((now() - start) / 1e6)) s"
        )
        for (word, number) in push.outcomes.sorted(by: { $0.key < $1.key }) { print("  \(number) × \(word)") }
        print("on the way:")
        for (word, number) in weather.seen.sorted(by: { $0.key < $1.key }) { print("  \(number) × \(word)") }
        try save(Array((push.ambiguous.sorted().joined(separator: "\n") + "\n").utf8), to: directory + "/ambiguous")
        store.close()
    }

    private func website() async throws -> Website {
        var policy = Policy()
        policy.answers = .website
        try policy.set("lifetime", to: "600")
        let key = SHA256.hash(Array("key".utf8))
        let added = try await store.run(
            Websites.add(
                Websites.New(
                    id: relay.operations.draw(), name: "storm", displayName: "Storm", policy: policy.json,
                    webhook: nil,
                    keyThumbprint: key, createdAt: SystemTime().now()), as: relay.operations.new()))
        guard added else { throw Fault("the website is there already") }
        return try await relay.website(named: "storm", key: key)
    }

    private func users(of website: Website, _ underway: Int) async throws -> [UserToken] {
        try await withThrowingTaskGroup(of: [UserToken].self) { group in
            for part in 0..<underway {
                group.addTask { [self] in
                    var tokens: [UserToken] = []
                    for number in stride(from: part, to: count, by: underway) {
                        let (token, _) = try await relay.register(
                            Registration(
                                username: "user\(number)", email: nil, phone: nil, displayName: nil, language: nil),
                            by: website, as: relay.operations.new())
                        _ = try await relay.bind(
                            token: token, pushToken: service.token(), by: website,
                            as: relay.operations.new())
                        tokens.append(token)
                    }
                    return tokens
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
    }

    private func ask(_ token: UserToken, _ website: Website) async {
        do throws(Refusal) {
            _ = try await relay.login(
                LoginRequest(subject: .token(token), ip: "203.0.113.77", service: "Online banking"), by: website,
                as: relay.operations.new())
        } catch {
            complain("a login was refused: \(error)")
            exit(1)
        }
    }

    private func attend() {
        loop.spawn { [self] in
            await relay.processDueEntries()
            _ = loop.schedule(after: .milliseconds(500)) { [self] in attend() }
        }
    }

    private func pushesLeft() async throws -> Int64 {
        try await store.run(Script("left", reads: [Self.countPushes()]))[0][0].integer("count")
    }

    private static let countPushes = Statement("SELECT count(*) AS count FROM outbox WHERE kind = 'push'")
}

/// Returns the resident memory in KiB.
private func resident() -> Int {
    guard let status = try? contents("/proc/self/status") else { return 0 }
    let line = String(decoding: status, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix("VmRSS") }
    return line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) } ?? 0
}
