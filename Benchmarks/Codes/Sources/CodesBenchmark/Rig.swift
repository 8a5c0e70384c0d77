import Bytes
import Crypto
import DeliveryOutcomes
import Domain
import EventLoop
import Log
import Measuring
import Relay
import Storage
import Synchronization
import World

/// Relays over their own store, with one website and any number of users.
final class Rig: Sendable {
    let loop: EventLoop
    let store: Store
    let website: Website
    /// The relay that writes outbox entries, but delivers none of them.
    let relay: Relay
    private let master = Secret(SystemRandomness().bytes(32))
    private let sealer: Sealer

    /// Creates a relay over a new store.
    ///
    /// - Parameters:
    ///   - signs: true if rows are signed and verified, as in the daemon.
    ///   - seals: true if personal values are sealed, as with `seal: personal`.
    ///   - chainsAudit: true if the audit rows are signed in a chain, as in the daemon.
    init(
        _ url: String, signs: Bool = true, seals: Bool = false, chainsAudit: Bool = true, on loop: EventLoop
    ) async throws {
        self.loop = loop
        let time = SystemTime()
        store = try Store.open(
            try StorageURL(url), schema: .migrate, time: time, log: Log(minimum: .error, time: time),
            options: try Self.options(signs ? master : nil, seals ? master : nil, chainsAudit))
        sealer = try Sealer(keys: [Sealer.Key(id: "1", key: master)])
        let nobody = MessageCouriers(mail: Nobody(), texts: Nobody())
        let relay = try Self.relay(over: store, master, sealer, nobody) { _ in }
        self.relay = relay
        var policy = Policy()
        try policy.set("lifetime", to: "600")
        try policy.set("code-deadline", to: "none")
        let key = SHA256.hash(Array("key".utf8))
        let new = Websites.New(
            id: relay.operations.draw(), name: "shop", displayName: "The Shop", policy: policy.json, webhook: nil,
            keyThumbprint: key, createdAt: time.now())
        let store = store
        website = try await Self.on(loop) {
            guard try await store.run(Websites.add(new, as: relay.operations.new())) else {
                throw Unmeasured("the website is there already: the store must be a new one")
            }
            await relay.runHeartbeat()
            return try await relay.website(named: "shop", key: key)
        }
    }

    private static func options(_ key: Secret?, _ sealing: Secret?, _ chainsAudit: Bool) throws -> StoreOptions {
        var options = StoreOptions()
        options.chainsAudit = chainsAudit
        options.rows = try key.map { try RowAuthenticator(keys: [RowAuthenticator.Key(id: "1", secret: $0)]) }
        options.personal = try sealing.map {
            PersonalSealer(try Sealer(keys: [Sealer.Key(id: "1", key: $0)]), seals: true)
        }
        return options
    }

    /// A courier that delivers nothing.
    private struct Nobody: MessageCourier {
        func send(_ message: Message) async -> DeliveryOutcome { .misconfigured(.message, reason: "nobody") }
    }

    /// Returns a relay that delivers the entries of the first one.
    func relay(_ couriers: MessageCouriers) throws -> Relay {
        try Self.relay(over: store, master, sealer, couriers) { [loop] work in loop.spawn(work) }
    }

    private static func relay(
        over store: Store, _ master: Secret, _ sealer: Sealer, _ couriers: MessageCouriers,
        spawn: @escaping @Sendable (@escaping @Sendable () async -> Void) -> Void
    ) throws -> Relay {
        let time = SystemTime()
        return Relay(
            settings: Relay.Settings(
                origin: "https://127.0.0.1:8080", pin: SHA256.hash([1]), policy: Policy(), isAlone: true),
            store: store, push: nil, couriers: couriers,
            phones: try CertificateAuthority.create(commonName: "phones", days: 10, at: time.now()),
            keys: RelayKeys(masterKey: master), sealer: sealer, time: time, randomness: SystemRandomness(),
            log: Log(minimum: .warning, time: time), spawn: spawn)
    }

    // MARK: Steps

    func register(_ number: Int, email: String? = nil, phone: String? = nil) async throws -> UserID {
        _ = try await relay.register(
            Registration(
                username: "user\(number)", email: email, phone: phone, displayName: nil, language: nil), by: website,
            as: relay.operations.new())
        return try await relay.user(named: "user\(number)", of: website).id
    }

    /// Adds an app with codes of six digits.
    func bindTOTP(_ user: UserID, _ secret: Secret) async throws {
        let id: FactorID = relay.operations.draw()
        let sealed = try SealedSecret(
            secret, row: id, kind: .totp, user: user, website: website.id, by: sealer, SystemRandomness())
        let factor = FactorImport.New(
            id: id, user: user, kind: .totp, secret: sealed.bytes, sealedBy: sealed.key, algorithm: .sha1, digits: 6,
            period: 30, counter: 0, createdAt: SystemTime().now())
        let query = FactorImport.write(factor, .keep, as: relay.operations.new())
        guard try await store.run(query) else { throw Unmeasured("a factor was not written") }
    }

    func ask(_ number: Int) async throws -> ChallengeID {
        try await relay.login(
            LoginRequest(subject: .username("user\(number)"), ip: "203.0.113.77", service: "Online banking"),
            by: website, as: relay.operations.new()
        ).challenge
    }

    // MARK: Measuring

    /// Does the work for each number on the loop, `width` at a time. Returns the seconds that it
    /// took.
    @discardableResult func time(
        _ numbers: Range<Int>, atOnce width: Int, _ work: @escaping @Sendable (Int) async throws -> Void
    ) async throws -> Double {
        let tally = Tally(numbers)
        let start = SystemTime().instant()
        await loop.perform {
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<width {
                    group.addTask {
                        while let number = tally.next() {
                            do { try await work(number) } catch { tally.fail(error) }
                        }
                    }
                }
            }
        }
        try tally.check()
        return seconds(since: start)
    }

    static func on<Value: Sendable>(
        _ loop: EventLoop, _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let outcome = await loop.perform { () async -> Result<Value, any Error> in
            do { return .success(try await body()) } catch { return .failure(error) }
        }
        return try outcome.get()
    }
}

/// The state that the tasks of one measurement share.
private final class Tally: Sendable {
    private let numbers: Range<Int>
    private let count = Atomic<Int>(0)
    private let failure = Mutex<(any Error)?>(nil)

    init(_ numbers: Range<Int>) { self.numbers = numbers }

    /// Returns the next number; nil if none is left or a task has failed.
    func next() -> Int? {
        let number = numbers.lowerBound + count.wrappingAdd(1, ordering: .relaxed).oldValue
        return number < numbers.upperBound && failure.withLock { $0 == nil } ? number : nil
    }

    func fail(_ error: any Error) { failure.withLock { $0 = $0 ?? error } }

    func check() throws {
        if let failure = failure.withLock({ $0 }) { throw failure }
    }
}

func seconds(since start: Instant) -> Double { Double((SystemTime().instant() - start).wholeNanoseconds) / 1e9 }

func whole(_ value: Double) -> String { String(Int(value.rounded())) }

func hundredths(_ value: Double) -> String {
    let all = Int((value * 100).rounded())
    return "\(all / 100).\(all % 100 < 10 ? "0" : "")\(all % 100)"
}
