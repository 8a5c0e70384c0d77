import Bytes
import Couriers
import Crypto
import Curl
import DeliveryOutcomes
import Domain
import EventLoop
import Log
import Measuring
import Relay
import Storage
import Synchronization
import Webhooks
import World

/// A relay over its own store, which sends webhooks as the daemon does.
final class Rig: Sendable {
    let loop: EventLoop
    let store: Store
    let relay: Relay
    private let sealer: Sealer
    let courier: HTTPWebhookCourier
    private let isOver = Atomic<Bool>(true)

    /// Creates a relay over a new store.
    ///
    /// - Parameter authority: the authority of the websites' certificates.
    init(_ url: String, on loop: EventLoop, authority: [UInt8]) async throws {
        self.loop = loop
        let time = SystemTime()
        let log = Log(minimum: .error, time: time)
        let master = Secret(SystemRandomness().bytes(32))
        // Rows are signed and the audit is chained, as in the daemon.
        var storing = StoreOptions()
        storing.rows = try RowAuthenticator(keys: [RowAuthenticator.Key(id: "1", secret: master)])
        store = try Store.open(try StorageURL(url), schema: .migrate, time: time, log: log, options: storing)
        sealer = try Sealer(keys: [Sealer.Key(id: "1", key: master)])
        var options = HTTPWebhookCourier.Options()
        guard let here = AddressRange("127.0.0.0/8") else { throw Unmeasured("no range") }
        options.client.addresses = AddressGuard(allowing: [here])
        options.client.extraTrust = authority
        courier = HTTPWebhookCourier(time: time, log: log, options: options)
        relay = Relay(
            settings: Relay.Settings(
                origin: "https://127.0.0.1:8080", pin: SHA256.hash([1]), policy: Policy(), isAlone: true),
            store: store, push: nil, couriers: MessageCouriers(), webhooks: courier,
            phones: try CertificateAuthority.create(commonName: "phones", days: 10, at: time.now()),
            keys: RelayKeys(masterKey: master), sealer: sealer, time: time, randomness: SystemRandomness(), log: log
        ) { work in loop.spawn(work) }
    }

    /// Starts the work that the daemon does every second.
    func begin() async {
        isOver.store(false, ordering: .relaxed)
        relay.replace(courier)
        await loop.perform {
            await self.relay.runHeartbeat()
            self.loop.spawn {
                while !self.isOver.load(ordering: .relaxed) {
                    await self.relay.deliverWebhooks()
                    await self.relay.runHeartbeat()
                    await self.loop.sleep(for: .seconds(1))
                }
            }
        }
    }

    /// Lets the relay send nothing until the next `begin`.
    func pause() async {
        isOver.store(true, ordering: .relaxed)
        relay.replace(nil)
        await loop.perform { await self.loop.sleep(for: .seconds(2)) }
    }

    func end() async {
        isOver.store(true, ordering: .relaxed)
        await relay.stopDeliveries()
        courier.close()
        await loop.perform { await self.loop.sleep(for: .seconds(2)) }
        store.close()
    }

    /// Adds a website that answers for its users itself, and receives webhooks at that URL.
    func website(_ name: String, webhook: String) async throws -> Website {
        var policy = Policy()
        try policy.set("answers", to: "website")
        try policy.set("number", to: "0")
        try policy.set("lifetime", to: "600")
        let id: WebsiteID = relay.operations.draw()
        let sealed = try sealer.seal(
            WebhookSecrets(current: WebhookSecret.make(SystemRandomness())).text.reveal(),
            associated: WebhookSecretSeal.associated(website: id))
        let key = SHA256.hash(Array(name.utf8))
        let new = Websites.New(
            id: id, name: name, displayName: "The \(name)", policy: policy.json,
            webhook: WebhookEndpoints.New(
                url: webhook, secrets: WebhookEndpoints.Secrets(sealed: sealed, sealedBy: sealer.currentID)),
            keyThumbprint: key, createdAt: SystemTime().now())
        return try await on { rig in
            guard try await rig.store.run(Websites.add(new, as: rig.relay.operations.new())) else {
                throw Unmeasured("the website is there already: the store must be a new one")
            }
            return try await rig.relay.website(named: name, key: key)
        }
    }

    /// Creates users with a phone for which the website answers.
    func users(_ count: Int, of website: Website) async throws -> [UserToken] {
        try await each(0..<count) { number, rig in
            let (token, _) = try await rig.relay.register(
                Registration(username: "user\(number)", email: nil, phone: nil, displayName: nil, language: nil),
                by: website, as: rig.relay.operations.new())
            _ = try await rig.relay.bind(
                token: token, pushToken: "aabbccdd", by: website, as: rig.relay.operations.new())
            return token
        }
    }

    /// Asks each of the users.
    func ask(_ users: [UserToken], of website: Website) async throws -> [ChallengeID] {
        try await each(users.indices) { number, rig in
            try await rig.relay.login(
                LoginRequest(subject: .token(users[number]), ip: "203.0.113.77", service: "Online banking"),
                by: website, as: rig.relay.operations.new()
            ).challenge
        }
    }

    /// Approves a login, and returns the time when that was committed.
    func approve(_ challenge: ChallengeID, by website: Website) async throws -> Instant {
        _ = try await relay.answer(challenge, of: nil, .approve, by: website, as: relay.operations.new())
        return SystemTime().instant()
    }

    func on<Value: Sendable>(_ body: @escaping @Sendable (Rig) async throws -> Value) async throws -> Value {
        let outcome = await loop.perform { () async -> Result<Value, any Error> in
            do { return .success(try await body(self)) } catch { return .failure(error) }
        }
        return try outcome.get()
    }

    /// Runs the work for all numbers, 32 at a time. The results are in the order of the numbers.
    func each<Value: Sendable>(
        _ numbers: Range<Int>, _ work: @escaping @Sendable (Int, Rig) async throws -> Value
    ) async throws -> [Value] {
        return try await withThrowingTaskGroup(of: [(Int, Value)].self) { group in
            let turns = Turns(next: numbers.lowerBound)
            for _ in 0..<32 {
                group.addTask {
                    var done: [(Int, Value)] = []
                    while case let number = turns.take(), number < numbers.upperBound {
                        done.append((number, try await self.on { rig in try await work(number, rig) }))
                    }
                    return done
                }
            }
            var all: [(Int, Value)] = []
            for try await done in group { all += done }
            return all.sorted { $0.0 < $1.0 }.map(\.1)
        }
    }
}

private final class Turns: Sendable {
    private let next: Atomic<Int>

    init(next: Int) { self.next = Atomic(next) }

    func take() -> Int { next.wrappingAdd(1, ordering: .relaxed).oldValue }
}
