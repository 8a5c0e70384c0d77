import Bytes
import Crypto
import Domain
import Log
import Synchronization
import World

/// Everything the five verbs need from the store. Storage implements each port beside the SQL of its verb.
public typealias RelayStore = AuthenticationStore & RegisterStore & ActivateStore & BindStore & DeviceStore & AskStore
    & DeliverStore & MessageStore & CascadeStore & AnswerStore & CodeStore & CodeFailureStore & FactorStore
    & AddressStore & PendingStore & ChangeStore & RevocationStore & WebhookStore & HeartbeatStore & RetentionStore
    & IdempotencyStore
    & KeyRotationStore

/// The product: five verbs over a store and a push service. It holds no connection and blocks no thread, and is shared
/// by all loops; what it remembers between requests are the held ones (`heldRequests`).
public final class Relay: Sendable {
    public struct Settings: Sendable {
        /// `https://host:port`, as websites and phones know this installation.
        public var origin: String
        /// SHA-256 of the key of the authority that signed the relay's certificate; phones pin it.
        public var pin: [UInt8]
        /// What holds where a website's row says nothing.
        public var policy: Policy
        /// The store can have no other relay, so whoever left a row there is dead for certain.
        public var isAlone: Bool
        public var retention: Retention
        public var quotas: Quotas

        public init(
            origin: String, pin: [UInt8], policy: Policy, isAlone: Bool, retention: Retention = Retention(),
            quotas: Quotas = Quotas()
        ) {
            self.origin = origin
            self.pin = pin
            self.policy = policy
            self.isAlone = isAlone
            self.retention = retention
            self.quotas = quotas
        }
    }

    let settings: Settings
    let store: any RelayStore
    let push: (any PushCourier)?
    private let couriers: Mutex<MessageCouriers>
    /// Issues the certificates of phones.
    let phones: any PhoneCertificates
    public let operations: Operations
    private let sealers: Mutex<Sealer>
    /// The state of signing rows anew under the current key.
    let signing = Mutex<(isRunning: Bool, notBefore: Instant?)>((false, nil))
    let time: any TimeSource
    let randomness: any Randomness
    let log: Log
    let metrics: RelayMetrics
    /// Where an address is, as people say it; nil where nobody knows.
    let locate: @Sendable (String) -> String?
    /// Starts work that nobody waits for, on the loop that asked.
    let spawn: @Sendable (@escaping @Sendable () async -> Void) -> Void
    public let id: RelayID
    public let heldRequests: HeldRequests
    public let quotaUse: QuotaUse
    let userQuota: UserQuota
    let quotaNotices = QuotaLog()
    let changeFeed = ChangeFeed()
    let revocations = Revocations()
    let retentionState = RetentionState()
    public let nonces: Nonces
    let proofs = ProofReplayCache()
    let phoneKeys = PhoneKeyCache()
    /// The budget of proofs under keys that are not known to be a phone's.
    let unknownKeys = UnknownKeyBudget()
    let peers = PeerRelays()
    /// Of activation codes.
    let activationThrottle = SenderThrottle()
    /// Of revocation codes: whoever lost a phone is not kept waiting by a neighbour's enrolment.
    let revocationThrottle = SenderThrottle()
    let running = RunningOperations()
    let refusals = RefusalBudget()
    let inFlight = InFlightEntries()
    let unsettled = Unsettled<SettledPush>()
    let unsettledMessages = Unsettled<SettledMessage>()
    let notificationBudget = NotificationBudget()
    let webhooks: WebhookDispatcher

    /// - Parameter later: runs work on a later turn of the loop that calls, so that others have their turn in between.
    public init(
        settings: Settings, store: any RelayStore, push: (any PushCourier)?,
        couriers: MessageCouriers = MessageCouriers(), webhooks: (any WebhookCourier)? = nil,
        phones: any PhoneCertificates,
        keys: RelayKeys, sealer: Sealer, time: any TimeSource, randomness: any Randomness, log: Log,
        metrics: RelayMetrics = RelayMetrics(), locate: @escaping @Sendable (String) -> String? = { _ in nil },
        later: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void = { $0() },
        spawn: @escaping @Sendable (@escaping @Sendable () async -> Void) -> Void
    ) {
        self.settings = settings
        self.store = store
        self.push = push
        self.couriers = Mutex(couriers)
        self.webhooks = WebhookDispatcher(webhooks)
        self.phones = phones
        sealers = Mutex(sealer)
        self.time = time
        self.randomness = randomness
        self.log = log
        self.metrics = metrics
        self.locate = locate
        self.spawn = spawn
        heldRequests = HeldRequests(later: later)
        quotaUse = QuotaUse(settings.quotas)
        userQuota = UserQuota(settings.quotas)
        nonces = Nonces(key: keys.proofs, since: time.now(), randomness: randomness)
        operations = Operations(key: keys.operations, randomness: randomness)
        id = operations.draw()
        metrics.show(heldRequests)
    }

    /// Seals answers that are kept for repeated requests, and what codes are made of. Its keys may change at any time: one
    /// use takes it once.
    var sealer: Sealer { sealers.withLock { $0 } }

    /// From now on.
    public func replace(_ sealer: Sealer) { sealers.withLock { $0 = sealer } }

    /// Nil where none is set up.
    var mail: (any MessageCourier)? { couriers.withLock { $0.mail } }
    var texts: (any MessageCourier)? { couriers.withLock { $0.texts } }
    var smsLimits: SMSLimits { couriers.withLock { $0.smsLimits } }

    /// From the next message on.
    public func replace(_ couriers: MessageCouriers) { self.couriers.withLock { $0 = couriers } }

    /// From 0 up to 1.
    func randomFraction() -> Double { Double(randomness.number(below: 1 << 20)) / Double(1 << 20) }

    /// Asks the store, and turns its failures into refusals that say nothing to the outside.
    func withStore<Answer: Sendable>(
        _ what: String, _ question: () async throws(StoreFailure) -> Answer
    ) async throws(Refusal) -> Answer {
        do throws(StoreFailure) {
            return try await question()
        } catch {
            throw report(what, error)
        }
    }

    /// Logs and counts a failure of the store. Returns what is told to the outside.
    func report(_ what: String, _ failure: StoreFailure) -> Refusal {
        switch failure {
        case .unavailable(let why):
            metrics.storeFailed(.unavailable)
            log.warning("store.unavailable", [.route: what, .reason: why])
            return .unavailable
        case .internal(let why):
            metrics.storeFailed(.broken)
            log.error("store.broken", [.route: what, .reason: why])
            return .broken
        case .forged(let row):
            metrics.storeFailed(.forged)
            log.error("row.forged", [.route: what, .row: row])
            return .broken
        }
    }
}
