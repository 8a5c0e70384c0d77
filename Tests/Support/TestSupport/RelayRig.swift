import Bytes
import Crypto
import DeliveryOutcomes
import Domain
import EventLoop
import Log
import Metrics
import Relay
import Storage
import Synchronization
import Webhooks
import World

/// A relay over a real store, on one real loop. The test moves its clock, and acts as its push
/// service.
public final class RelayRig: Sendable {
    public static let origin = "https://login.example.com:8080"

    public let time: TestTime
    public let store: Store
    public let relay: Relay
    /// The authority of the phones' certificates.
    public let phones: CertificateAuthority
    public let pushes = Pushes()
    public let mails = RecordedMessages()
    public let texts = RecordedMessages()
    public let webhooks = RecordedWebhooks()
    public let sink = MemorySink()
    public let registry = Registry()
    private let loops: LoopGroup
    private let backgroundWork = BackgroundWork()
    private let place: FreshStore
    public var url: StorageURL { place.url }
    public var loop: EventLoop { loops.loops[0] }

    public convenience init(
        _ kind: StoreKind, time: TestTime = TestTime(), seals: Bool = false, browsers: BrowserAccess? = nil
    ) async throws {
        try await self.init(over: try await kind.lent(), time: time, seals: seals, browsers: browsers)
    }

    /// Creates another relay over the same store.
    public convenience init(beside other: RelayRig) async throws {
        try await self.init(over: other.place, time: other.time)
    }

    /// - Parameters:
    ///   - seals: whether the store seals personal values.
    ///   - browsers: the addresses for phones in browsers.
    public init(
        over place: FreshStore, time: TestTime, quotas: Quotas = Quotas(), seals: Bool = false,
        browsers: BrowserAccess? = nil
    ) async throws {
        self.time = time
        self.place = place
        let log = Log(minimum: .debug, time: time, sink: sink)
        let loops = try LoopGroup.start(count: 1, time: SystemTime())
        self.loops = loops
        // The store's deadlines use the machine's clock, so a test that moves its own clock cannot
        // exceed them.
        var options = StoreOptions.patient
        options.rows = try Self.rowAuthenticator()
        options.personal = PersonalSealer(try Self.sealer(), seals: seals)
        let signing = options
        store = try await blocking { try place.open(log: log, options: signing) }
        let authority = try CertificateAuthority.create(commonName: "phones", days: 10, at: time.now())
        phones = try CertificateAuthority(
            certificate: authority.certificate, key: authority.key, revocationListURL: Self.origin + "/crl")
        relay = try Self.relay(
            over: store, push: pushes, mail: mails, texts: texts, webhooks: webhooks, phones: phones, time: time,
            randomness: SystemRandomness(), log: log, isAlone: false, metrics: RelayMetrics(registry), quotas: quotas,
            browsers: browsers
        ) { [backgroundWork] work in backgroundWork.spawn(work) }
    }

    /// Returns another relay of this rig over another store object.
    ///
    /// - Parameters:
    ///   - mail: its mail courier; nil for that of the rig.
    ///   - webhooks: its webhook courier; nil for that of the rig.
    ///   - rolling: the schedules of its rolling keys.
    public func relay(
        over store: Store, mail: (any MessageCourier)? = nil, webhooks: (any WebhookCourier)? = nil,
        rolling: RollingKeySettings = RollingKeySettings()
    ) throws -> Relay {
        try Self.relay(
            over: store, push: pushes, mail: mail ?? mails, texts: texts, webhooks: webhooks ?? self.webhooks,
            phones: try CertificateAuthority.create(commonName: "phones", days: 10, at: time.now()), time: time,
            randomness: SystemRandomness(), log: Log(minimum: .debug, time: time, sink: sink), isAlone: false,
            rolling: rolling
        ) { [backgroundWork] work in backgroundWork.spawn(work) }
    }

    /// Waits until all background work of the relay has ended.
    public func settled() async { await backgroundWork.settled() }

    deinit {
        store.close()
        loops.stopAndJoin()
    }

    public static func relay(
        over store: Store, push: (any PushCourier)?, mail: (any MessageCourier)? = nil,
        texts: (any MessageCourier)? = nil, webhooks: (any WebhookCourier)? = nil, phones: any PhoneCertificates,
        time: any TimeSource,
        randomness: any Randomness, log: Log,
        isAlone: Bool, metrics: RelayMetrics = RelayMetrics(), quotas: Quotas = Quotas(),
        rolling: RollingKeySettings = RollingKeySettings(), browsers: BrowserAccess? = nil,
        spawn: @escaping @Sendable (@escaping @Sendable () async -> Void) -> Void
    ) throws -> Relay {
        Relay(
            settings: Relay.Settings(
                origin: origin, browsers: browsers, pin: SHA256.hash(Array("pin".utf8)), policy: Policy(),
                isAlone: isAlone,
                quotas: quotas, rolling: rolling),
            store: store, push: push, couriers: MessageCouriers(mail: mail, texts: texts), webhooks: webhooks,
            phones: phones,
            keys: RelayKeys(masterKey: masterKey), sealer: try sealer(),
            statements: try statements(), time: time,
            randomness: randomness, log: log, metrics: metrics, spawn: spawn)
    }

    /// The server certificate with whose key every rig signs its statements.
    public static let server = Result { try TestCertificates().server }

    private static func statements() throws -> StatementSigner {
        let server = try server.get()
        return StatementSigner(
            certificate: server.certificate, key: try CertificateKey(pem: try server.keyPEM()))
    }

    /// Runs the body on the relay's loop, as every request runs.
    public func on<Value: Sendable>(_ body: @escaping @Sendable (Relay) async throws -> Value) async throws -> Value {
        let relay = relay
        let outcome = await loop.perform { () async -> Result<Value, any Error> in
            do { return .success(try await body(relay)) } catch { return .failure(error) }
        }
        return try outcome.get()
    }

    /// The webhook secret of every website with a webhook endpoint.
    public static let webhookSecret = WebhookSecret.make(SystemRandomness())

    /// Adds a website with its own key. By default its phones answer without a signature, for tests
    /// in which the proof does not matter.
    public func website(
        _ name: String, policies: [String: String] = [:], webhook: String? = nil
    ) async throws -> Website {
        var policy = Policy()
        policy.answers = .certificate
        for (key, text) in policies { try policy.set(key, to: text) }
        let key = SHA256.hash(Array(name.utf8))
        let json = policy.json(of: Policy.keys)
        let id: WebsiteID = relay.operations.draw()
        let sealed = try Self.sealer().seal(
            WebhookSecrets(current: Self.webhookSecret).text.reveal(),
            associated: WebhookSecretSeal.associated(website: id))
        let secrets = WebhookEndpoints.Secrets(sealed: sealed, sealedBy: try Self.sealer().currentID)
        let new = Websites.New(
            id: id, name: name, displayName: "The \(name)", policy: json,
            webhook: webhook.map { WebhookEndpoints.New(url: $0, secrets: secrets) }, keyThumbprint: key,
            createdAt: time.now())
        let operation = relay.operations.new()
        let query = Websites.add(new, as: operation)
        let store = store
        let added = try await on { _ in try await store.run(query) }
        guard added else { throw RigFailure("the website \(name) is there already") }
        return try await on { relay in try await relay.website(named: name, key: key) }
    }

    /// Registers a user and binds one phone.
    public func enrolled(
        _ username: String, at website: Website, pushToken: String? = nil
    ) async throws -> (user: UserToken, phone: TestPhone, credential: PhoneCredential) {
        let (token, activation) = try await on { relay in
            try await relay.register(
                Registration(username: username, email: nil, phone: nil, displayName: nil, language: nil), by: website,
                as: relay.operations.new())
        }
        let phone = try TestPhone(pushToken: pushToken ?? "push-\(username)")
        let binding = try await bind(phone, user: token, code: try activation.code, website: website.name)
        guard case .bound(let bound) = binding else { throw RigFailure("the first phone has to wait") }
        let key = phone.key.publicKey.spkiThumbprint
        // The user has no address, so the mail about the binding would be settled in the next round.
        try execute("DELETE FROM outbox WHERE kind = 'mail' AND device_id = x'\(bound.device)'")
        return (
            token, phone, try await on { relay in try await relay.device(bound.device, key: key, isCertified: true) }
        )
    }

    public func bind(
        _ phone: TestPhone, user: UserToken, code: String, website: String,
        languages: RequestedLanguages = .none, from sender: String = "192.0.2.1"
    ) async throws -> Binding {
        let proof = try phone.proof(
            token: user.text, code: code, origin: Self.origin, website: website, at: time.now())
        var request = BindRequest(
            token: user, pushToken: phone.pushToken, activationCode: code, proof: proof, binding: nil, name: "Phone",
            platform: .ios, environment: .production)
        request.languages = languages
        return try await on { [request] relay in try await relay.bind(request, from: sender) }
    }
}

extension RelayRig {
    /// Returns the data that a phone receives about a challenge of its user.
    public func shown(_ challenge: ChallengeID, to phone: PhoneCredential) async throws -> TestPhone.Shown {
        let store = store
        let row = try await on { _ in try await store.challenge(challenge, of: phone.user) }
        guard let row else { throw RigFailure("there is no challenge \(challenge) for \(phone.user)") }
        return TestPhone.Shown(
            challenge: challenge.text, nonce: Base64URL.encode(row.nonce), context: row.context)
    }

    /// A bound phone: its key, and its credential at the relay.
    public typealias BoundPhone = (phone: TestPhone, credential: PhoneCredential)

    /// Returns the phone's signed decision about a challenge.
    public func signed(
        _ decision: Decision, _ challenge: ChallengeID, number: String? = nil, uv: UserVerification = .none,
        by bound: BoundPhone
    ) async throws -> String {
        try bound.phone.decision(
            decision.rawValue, about: try await shown(challenge, to: bound.credential),
            device: bound.credential.id.text, origin: Self.origin, number: number, uv: uv.rawValue, at: time.now())
    }

    /// Makes the phone decide: it signs, is authenticated as at every request, and posts the
    /// answer.
    public func decide(
        _ decision: Decision, _ challenge: ChallengeID, number: String? = nil, uv: UserVerification = .none,
        by bound: BoundPhone
    ) async throws -> ChallengeLife.Result {
        let answer = PhoneAnswer(
            approves: decision == .approve,
            signed: try await signed(decision, challenge, number: number, uv: uv, by: bound))
        return try await post(answer, challenge, by: bound)
    }

    public func post(
        _ answer: PhoneAnswer, _ challenge: ChallengeID, by bound: BoundPhone
    ) async throws -> ChallengeLife.Result {
        try await on { relay in
            let phone = try await relay.device(bound.credential.id, key: bound.credential.key, isCertified: true)
            return try await relay.answer(challenge, answer, by: phone)
        }
    }
}

public struct RigFailure: Error, CustomStringConvertible {
    public let description: String
    public init(_ description: String) { self.description = description }
}

/// The background work of the relay, which a test can wait for.
private final class BackgroundWork: Sendable {
    private struct State {
        var running = 0
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    func spawn(_ work: @escaping @Sendable () async -> Void) {
        state.withLock { $0.running += 1 }
        EventLoop.current?.spawn {
            await work()
            self.ended()
        }
    }

    func settled() async {
        await withCheckedContinuation { continuation in
            let idle = state.withLock { state in
                if state.running > 0 { state.waiting.append(continuation) }
                return state.running == 0
            }
            if idle { continuation.resume() }
        }
    }

    private func ended() {
        let waiting = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            state.running -= 1
            guard state.running == 0 else { return [] }
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }
}

extension RelayRig {
    /// Runs a query that returns one number.
    public func count(_ sql: String) throws -> Int64 {
        try store.runBlocking(Script("test", reads: [.value(of: sql)])).row(0).integer("value")
    }

    /// Runs a query that returns one text.
    public func text(_ sql: String) throws -> String {
        try store.runBlocking(Script("test", reads: [.value(of: sql)])).row(0).text("value")
    }

    /// Changes the store by SQL, as an operator who then adopts the changed rows.
    public func execute(_ sql: String) throws {
        _ = try store.runBlocking(
            Script("test", rows: SignedRows.everythingAdopted, writes: [Statement(sql)()]))
    }

    /// Changes the store by SQL, as an attacker with write access and no key.
    public func forge(_ sql: String) throws {
        _ = try store.runBlocking(Script("test", writes: [Statement(sql)()]))
    }
}

extension Registry {
    /// Returns the value of a series, named as in the output:
    /// `twoefay_pushes_total{outcome="accepted"}`.
    public func number(_ series: String) -> Double? {
        // The lines are compared as bytes, because characters take ten times as long.
        let prefix = Array("\(series) ".utf8)
        return exposition { series.hasPrefix($0) }.split(separator: UInt8(ascii: "\n"))
            .first { $0.starts(with: prefix) }
            .flatMap { Double(String(decoding: $0.dropFirst(prefix.count), as: UTF8.self)) }
    }
}

extension IssuedActivation {
    /// The code, which the website shows.
    public var code: String {
        get throws {
            guard let shown else { throw RigFailure("the website has no code: \(self)") }
            return shown.code
        }
    }
}
