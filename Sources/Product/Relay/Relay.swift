import Attestation
import Bytes
import Crypto
import Domain
import Log
import Synchronization
import World

/// All the store ports that the five verbs and the periodic work of a relay need. Storage
/// implements each port beside the SQL of its verb.
public typealias RelayStore = AuthenticationStore & RegisterStore & ActivateStore & BindStore & DeviceStore
    & CertificateStore & ReportStore & PhoneCodeStore & TaggedCertificateStore & AskStore
    & DeliverStore & MessageStore & CascadeStore & AnswerStore & CodeStore & CodeFailureStore & VerifyCodeStore
    & FactorStore
    & AddressStore & AttestationStore & WebPhoneStore & PINStore & UnlockCodeStore & GoodbyeStore & PendingStore
    & NoticeStore
    & ChangeStore
    & RevocationStore
    & WebhookStore
    & HeartbeatStore
    & RetentionStore & RecoveryStore & AccountStore
    & IdempotencyStore
    & KeyRotationStore & RollingKeyStore & WebhookSecretStore & PersonalSealingStore
    & WebsiteKeyStore & WebsiteRenewalStore & StatedPinStore & WebsiteUsageStore

/// The product: five verbs on top of a store and the couriers. It holds no connection and blocks no
/// thread, and all loops share it. Between requests it keeps only state in memory that it may lose:
/// held requests, quotas, throttles and caches.
public final class Relay: Sendable {
    public struct Settings: Sendable {
        /// `https://host:port`, as websites and phones know this installation.
        public var origin: String
        /// The addresses for phones in browsers; nil if there is no listener for them.
        public var browsers: BrowserAccess?
        /// SHA-256 of the key of the authority that signed the relay's certificate; phones pin it.
        public var pin: [UInt8]
        /// The policy values that apply if a website's row does not set them.
        public var policy: Policy
        /// Whether this relay is the only one that can use the store. If it is, another relay that
        /// the store lists is certainly dead.
        public var isAlone: Bool
        public var retention: Retention
        public var quotas: Quotas
        public var rolling: RollingKeySettings

        public init(
            origin: String, browsers: BrowserAccess? = nil, pin: [UInt8], policy: Policy, isAlone: Bool,
            retention: Retention = Retention(), quotas: Quotas = Quotas(),
            rolling: RollingKeySettings = RollingKeySettings()
        ) {
            self.origin = origin
            self.browsers = browsers
            self.pin = pin
            self.policy = policy
            self.isAlone = isAlone
            self.retention = retention
            self.quotas = quotas
            self.rolling = rolling
        }
    }

    let settings: Settings
    let store: any RelayStore
    let push: (any PushCourier)?
    private let couriers: Mutex<MessageCouriers>
    /// The issuer of phone certificates.
    private let phoneIssuer: Mutex<any PhoneCertificates>
    var phones: any PhoneCertificates { phoneIssuer.withLock { $0 } }
    private let websiteIssuer = Mutex<(any WebsiteCertificates)?>(nil)
    /// The issuer of certificates that websites renew by themselves; nil if they may not.
    var websiteAuthority: (any WebsiteCertificates)? { websiteIssuer.withLock { $0 } }
    public let operations: Operations
    private let sealers: Mutex<Sealer>
    /// The installation's policy, and those that stored texts make of it.
    let policies: ReadPolicies
    let adjustables: Mutex<AdjustableSettings>
    let signers: Mutex<StatementSigner?>
    private let verifiers: Mutex<AttestationVerifier>
    /// The state of the task that signs rows again under the current key.
    let signing = Mutex<(isRunning: Bool, notBefore: Instant?)>((false, nil))
    /// Whether the task that rewrites personal values is running.
    let isSealing = Mutex(false)
    let time: any TimeSource
    let randomness: any Randomness
    let log: Log
    let metrics: RelayMetrics
    /// Returns the place of an IP address as text for people; nil if it is unknown.
    let locate: @Sendable (String) -> String?
    /// Returns the least distance in kilometres between an IP address and a place; nil if the place
    /// of the address is not known.
    let distance: @Sendable (String, CoarsePlace) -> Int?
    /// Starts background work, for which no request waits, on the loop of the caller.
    let spawn: @Sendable (@escaping @Sendable () async -> Void) -> Void
    public let id: RelayID
    public let heldRequests: HeldRequests
    public let quotaUse: QuotaUse
    let userQuota: UserQuota
    let quotaNotices = QuotaLog()
    let usage = WebsiteUsage()
    let limitNotices = WebsiteLimitLog()
    /// The websites whose outdated policies were logged.
    let outdatedPolicies = Mutex<Set<WebsiteID>>([])
    let changeFeed = ChangeFeed()
    let revocations = Revocations()
    let usedWebsiteKeys = UsedWebsiteKeys()
    let authorityPins: AuthorityPins
    let revocationLists = RevocationListCache()
    let retentionState = RetentionState()
    /// The installation's epoch, to which kept answers are bound.
    let epoch: [UInt8]
    public let nonces: Nonces
    /// The key that signs the links to accounts.
    let accountLinkKey: Secret
    let proofs = ProofReplayCache()
    let phoneKeys = PhoneKeyCache()
    /// The budget of each sender for DPoP proofs under keys that are not known to belong to a
    /// phone.
    let unknownKeys = SenderBudget()
    /// The budget of each sender for signed statements of the time.
    let timeBudget = SenderBudget()
    /// The budget of each sender for goodbyes, which cost two signatures.
    let goodbyeBudget = SenderBudget()
    let reportBudget = ReportBudget()
    /// The budget of each phone for requests for its user's account.
    let accountBudget = ReportBudget()
    /// The budget of each sender for requests with the link to an account.
    let accountLinkBudget = SenderBudget()
    /// The budget of each phone for requests for the secret of its codes.
    let secretBudget = ReportBudget()
    /// The budget of each phone for tagged certificates.
    let certificateBudget = ReportBudget()
    /// The pauses of phones between requests to an authority outside of the installation.
    let outsidePauses = OutsidePauses()
    /// The budget of each phone for changes of its PIN.
    let pinBudget = ReportBudget()
    let peers = PeerRelays()
    /// The throttle for wrong activation codes.
    let activationThrottle = SenderThrottle()
    /// The throttle for revocation codes. It is separate so that enrolments from the same network
    /// do not delay a person who lost a phone.
    let revocationThrottle = SenderThrottle()
    let running = RunningOperations()
    let refusals = RefusalBudget<DeviceID>()
    let attestationRefusals = RefusalBudget<UserID>()
    let inFlight = InFlightEntries()
    let outages = Mutex(PushOutages())
    let seen = SeenChallenges()
    /// The leased mails and text messages that wait for their turn.
    let leasedMessages = LeasedMessages()
    let unsettled = Unsettled<SettledPush>()
    let unsettledMessages = Unsettled<SettledMessage>()
    let notificationBudget = NotificationBudget()
    let webhooks: WebhookDispatcher
    private let forgeryObserver = Mutex<(@Sendable (String) -> Void)?>(nil)

    /// - Parameters:
    ///   - statements: the signer of the relay's statements. A relay without one refuses the requests
    ///     that need one.
    ///   - attestations: judges the attestations of phones; by default none is accepted.
    ///   - later: runs work in a later turn of the calling loop, so that other work can run in
    ///     between.
    public init(
        settings: Settings, store: any RelayStore, push: (any PushCourier)?,
        couriers: MessageCouriers = MessageCouriers(), webhooks: (any WebhookCourier)? = nil,
        phones: any PhoneCertificates,
        keys: RelayKeys, sealer: Sealer, statements: StatementSigner? = nil,
        attestations: AttestationVerifier = .trustingNobody, time: any TimeSource,
        randomness: any Randomness, log: Log,
        metrics: RelayMetrics = RelayMetrics(), locate: @escaping @Sendable (String) -> String? = { _ in nil },
        distance: @escaping @Sendable (String, CoarsePlace) -> Int? = { _, _ in nil },
        later: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void = { $0() },
        spawn: @escaping @Sendable (@escaping @Sendable () async -> Void) -> Void
    ) {
        self.settings = settings
        authorityPins = AuthorityPins(pin: settings.pin)
        self.store = store
        self.push = push
        self.couriers = Mutex(couriers)
        self.webhooks = WebhookDispatcher(webhooks)
        phoneIssuer = Mutex(phones)
        sealers = Mutex(sealer)
        policies = ReadPolicies(settings.policy)
        adjustables = Mutex(AdjustableSettings(settings))
        signers = Mutex(statements)
        verifiers = Mutex(attestations)
        self.time = time
        self.randomness = randomness
        self.log = log
        self.metrics = metrics
        self.locate = locate
        self.distance = distance
        self.spawn = spawn
        heldRequests = HeldRequests(later: later)
        quotaUse = QuotaUse(settings.quotas)
        userQuota = UserQuota(settings.quotas)
        epoch = keys.epoch
        nonces = Nonces(key: keys.proofs, epoch: keys.epoch, since: time.now(), randomness: randomness)
        accountLinkKey = keys.accountLinks.locked()
        operations = Operations(key: keys.operations, randomness: randomness, time: time)
        id = operations.draw()
        metrics.show(heldRequests)
    }

    /// The sealer of stored answers and of the secrets of factors, operations and webhook
    /// endpoints. Its keys may change at any time, so each use reads this property once.
    var sealer: Sealer { sealers.withLock { $0 } }

    /// Replaces the sealer for all later uses.
    public func replace(_ sealer: Sealer) { sealers.withLock { $0 = sealer } }

    /// The policy of websites that set nothing else.
    var defaultPolicy: Policy { policies.installation }

    /// Uses these policies for later requests. An open challenge keeps those of its beginning.
    public func replace(_ policy: Policy) { policies.replace(policy) }

    /// The judge of attestations. Its files may change at any time, so each use reads this property
    /// once.
    var attestations: AttestationVerifier { verifiers.withLock { $0 } }

    /// Replaces the judge of attestations for all later uses.
    public func replace(_ attestations: AttestationVerifier) { verifiers.withLock { $0 = attestations } }

    /// The courier for mails; nil if none is configured.
    var mail: (any MessageCourier)? { couriers.withLock { $0.mail } }
    /// The courier for text messages; nil if none is configured.
    var texts: (any MessageCourier)? { couriers.withLock { $0.texts } }
    var smsLimits: SMSLimits { couriers.withLock { $0.smsLimits } }

    /// Replaces the issuer of later certificates of phones. The revocation list is made anew, as
    /// the last one may be by another authority.
    public func replace(_ issuer: any PhoneCertificates) {
        phoneIssuer.withLock { $0 = issuer }
        revocationLists.issuerReplaced()
    }
    /// Replaces the issuer of certificates that websites renew by themselves; nil ends it.
    public func replace(websites issuer: (any WebsiteCertificates)?) { websiteIssuer.withLock { $0 = issuer } }

    /// Replaces the couriers for all later messages.
    public func replace(_ couriers: MessageCouriers) { self.couriers.withLock { $0 = couriers } }

    /// Returns a random number in the range from 0 up to, but not including, 1.
    func randomFraction() -> Double { Double(randomness.number(below: 1 << 20)) / Double(1 << 20) }

    /// Runs a store query, and turns a failure into a refusal that reveals nothing to the outside.
    ///
    /// - Parameter what: the name of the query in the log.
    func withStore<Answer: Sendable>(
        _ what: String, _ question: () async throws(StoreFailure) -> Answer
    ) async throws(Refusal) -> Answer {
        do throws(StoreFailure) {
            return try await question()
        } catch {
            throw report(what, error)
        }
    }

    /// Logs and counts a failure of the store. Returns the refusal for the caller.
    func report(_ what: String, _ failure: StoreFailure) -> Refusal {
        switch failure {
        case .unavailable(let why), .mismatched(let why, _):
            metrics.storeFailed(.unavailable)
            log.warning("store.unavailable", [.route: what, .reason: why])
            return .unavailable
        case .internal(let why):
            metrics.storeFailed(.broken)
            log.error("store.broken", [.route: what, .reason: why])
            return .broken
        case .forged(let row):
            metrics.storeFailed(.forged)
            reportForged(row, in: what)
            return .broken
        }
    }

    /// Registers the observer of rows that no relay wrote. It is called on a loop.
    public func onForgery(_ observer: @escaping @Sendable (_ row: String) -> Void) {
        forgeryObserver.withLock { $0 = observer }
    }

    /// Logs a row that no relay wrote, by its table and key.
    ///
    /// - Parameter what: the name of the query that found it.
    func reportForged(_ row: String, in what: String) {
        log.error("row.forged", [.route: what, .row: row])
        forgeryObserver.withLock { $0 }?(row)
    }
}
