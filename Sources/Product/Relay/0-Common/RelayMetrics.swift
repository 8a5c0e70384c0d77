import DeliveryOutcomes
import Domain
import Metrics
import Synchronization
import World

/// The counters and gauges of the five verbs. All label values are constants of this program, and
/// never the name of a user, or text from a peer. Only `WebsiteMetrics` names websites.
public struct RelayMetrics: Sendable {
    enum CertificateOutcome: String, CaseIterable {
        case issued, later, failed
    }

    private let asked: Counters<Factor?>
    private let begun: Counters<Factor>
    private let codes: Counters<CodeOutcome>
    let proofs: Counters<ProofCost>
    private let places: Counters<PlaceCheck>
    private let attestations: Counters<AttestationOutcomeLabel>
    private let limits: Counters<Limit>
    private let ended: Counters<End>
    private let pushes: Counters<PushOutcomeLabel>
    private let besidePushes: Counter
    private let servicesDown = ServicesDownGauge()
    private let messages: Counters<MessageAttempt>
    private let unsentAnnouncements: Counters<UnsentAnnouncement.Reason>
    private let backlog = BacklogGauge()
    private let decisionsRefused: Counters<DecisionFault>
    private let barred: Counters<UserState>
    private let certificates: Counters<CertificateOutcome>
    private let codeLocks: Counter
    private let pins: Counters<PINOutcome>
    private let storeFailures: Counters<StoreFailure.Word>
    private let tidied: Counters<ExpiredRows.Kind>
    private let keysRolled: Counters<RolledKey>
    private let keyTimes = RollingKeyTimes()
    private let heldRequests: HeldRequestGauge
    let webhooks: WebhookMetrics
    let logins: LoginTimes
    let websites: WebsiteMetrics

    /// The end of a challenge.
    private struct End: Hashable {
        let reason: Reason?
        let proof: Proof?

        /// All combinations that can occur. A failure has a reason. A success always has a proof. A
        /// failure has one only if an answer caused it.
        static let all =
            Proof.allCases.map { End(reason: nil, proof: $0) }
            + Reason.allCases.flatMap { reason in
                ([nil] + Proof.allCases.map { $0 }).map { End(reason: reason, proof: $0) }
            }

        var labels: [String] {
            [reason == nil ? "success" : "failure", reason?.rawValue ?? "none", proof?.rawValue ?? "none"]
        }
    }

    /// Declares all series. A caller that does not read the metrics passes an unused registry.
    public init(_ registry: Registry = Registry()) {
        asked = registry.counters(
            "twoefay_challenges_asked_total",
            "Challenges opened, by first factor: pull if nothing was pushed, none if no factor could begin.",
            by: ["factor"], Factor.allCases + [nil]
        ) { [$0?.rawValue ?? "none"] }
        begun = registry.counters(
            "twoefay_factors_begun_total",
            "Factors begun later in a challenge, automatically or on request, and first factors that send a code.",
            by: "factor")
        codes = registry.counters(
            "twoefay_codes_total",
            "Codes submitted at /backup and /verify-otp, by outcome: right, wrong, void (unknown form), early (too soon, 429) or "
                + "locked (403).",
            by: "outcome")
        proofs = registry.counters(
            "twoefay_proofs_total",
            "Work done for well-formed DPoP proofs, by step: lookup, signature, unknown (key not found) or "
                + "limited (429).", by: "step")
        places = registry.counters(
            "twoefay_phone_places_total",
            "Phone answers whose place was compared with the login's, by result: near, far or unknown.", by: "result")
        attestations = registry.counters(
            "twoefay_attestations_total",
            "Attestations judged when phones were bound, by outcome: valid, flawed, invalid, missing or refused.",
            by: "outcome")
        limits = registry.counters(
            "twoefay_limits_reached_total",
            "Requests and messages over a limit, by limit: login, push, guess, sending, code, time, report, sms, "
                + "requests, held or users.",
            by: "limit")
        ended = registry.counters(
            "twoefay_challenges_ended_total",
            "Challenges that ended, by result, failure reason and proof of the answer.",
            by: ["result", "reason", "proof"], End.all
        ) { $0.labels }
        pushes = registry.counters(
            "twoefay_pushes_total", "Push attempts, by outcome at the push service.", by: "outcome")
        besidePushes = registry.counter(
            "twoefay_push_outage_logins_total",
            "Logins whose next factor began at once, because the push service was down.")
        registry.gauge(
            "twoefay_push_services_down", "Push services of the settings that are down, as this relay knows."
        ) { [servicesDown] in servicesDown.count }
        messages = registry.counters(
            "twoefay_messages_total",
            "Attempts to send a mail or text message, by kind and outcome.",
            by: ["kind", "outcome"], MessageAttempt.all
        ) { [$0.kind.rawValue, $0.outcome.rawValue] }
        unsentAnnouncements = registry.counters(
            "twoefay_announcements_unsent_total",
            "Mails about account events that nobody got, by reason: no_server, no_address, limited, refused, expired or "
                + "other.", by: "reason")
        registry.duration(
            "twoefay_outbox_oldest_overdue_seconds", "Age of the oldest overdue outbox entry, in seconds."
        ) { [backlog] in backlog.late }
        registry.gauge("twoefay_outbox_dead_letters", "Dead letters in the outbox, including webhooks.") { [backlog] in
            backlog.dead
        }
        decisionsRefused = registry.counters(
            "twoefay_decisions_refused_total",
            "Phone decisions that were refused and do not count against the user, by reason.",
            by: "reason")
        certificates = registry.counters(
            "twoefay_phone_certificates_total",
            "Certificates asked of the phones' authority, by outcome: issued, later (away, or not decided) or failed.",
            by: "outcome")
        barred = registry.counters(
            "twoefay_users_blocked_total",
            "Users who became locked by wrong numbers or frozen by a fraud report, by state.",
            by: ["state"], [.locked, .frozen]
        ) { [$0.rawValue] }
        codeLocks = registry.counter(
            "twoefay_codes_locked_total",
            "Users whose codes were locked after too many wrong codes; their phones can still approve.")
        pins = registry.counters(
            "twoefay_pins_total",
            "PINs of phones, by outcome: set, changed, reset, unlocked, wrong or locked; PUKs: puk_wrong or puk_locked; "
                + "unlock codes: unlock_wrong.",
            by: "outcome")
        webhooks = WebhookMetrics(registry)
        logins = LoginTimes(registry)
        websites = WebsiteMetrics(registry)
        storeFailures = registry.counters(
            "twoefay_store_failures_total",
            "Store operations that failed, by kind: unavailable (down, hung or full; caller got 503) or "
                + "broken (invalid result).",
            by: "kind")
        let waits = HeldRequestGauge()
        registry.gauge("twoefay_requests_held", "Requests held open until their event occurs or they time out.") {
            waits.count
        }
        self.heldRequests = waits
        tidied = registry.counters(
            "twoefay_retention_deleted_rows_total",
            "Rows that this relay deleted under the retention rules, by kind; a challenge counts once "
                + "with its dependent rows.", by: "kind")
        keysRolled = registry.counters(
            "twoefay_keys_rolled_total", "Keys and webhook secrets that this relay made by its schedule, by kind.",
            by: "kind")
        registry.gauge(
            "twoefay_rolling_key_made_timestamp_seconds",
            "Time at which the newest rolling key was made, in seconds since 1970; 0 if there is none."
        ) { [keyTimes] in keyTimes.newest }
    }

    func rolled(_ key: RolledKey) { keysRolled.add(key) }

    /// Records the rolling keys that this relay has read.
    func recordKeys(_ eras: [KeyEra]) { keyTimes.record(eras) }
}

/// The kinds of keys and secrets that relays replace by a schedule.
enum RolledKey: String, CaseIterable, Sendable {
    case nonces, webhooks
}

extension RelayMetrics {
    /// Counts a challenge that was asked, by the factor with which it began; nil if none could
    /// begin.
    func asked(_ factor: Factor?) { asked.add(factor) }

    func began(_ factor: Factor) { begun.add(factor) }

    func handedIn(_ outcome: CodeOutcome) { codes.add(outcome) }

    func reached(_ limit: Limit) { limits.add(limit) }

    /// Counts the end of a challenge.
    ///
    /// - Parameters:
    ///   - reason: the reason of a failure; nil after a success.
    ///   - proof: how an answer was authenticated; nil if the challenge ended without one.
    func ended(_ reason: Reason?, _ proof: Proof?) {
        // A row that was written by hand may have neither.
        guard reason != nil || proof != nil else { return }
        ended.add(End(reason: reason, proof: proof))
    }

    func compared(_ check: PlaceCheck) { places.add(check) }

    func attested(_ outcome: AttestationOutcomeLabel) { attestations.add(outcome) }

    func pushed(_ outcome: DeliveryOutcome) { pushes.add(PushOutcomeLabel(outcome)) }

    /// Counts a login that did not wait for its push.
    func pushWasDown() { besidePushes.add() }

    func recordServicesDown(_ count: Int) { servicesDown.set(count) }

    func messaged(_ kind: MessageKind, _ outcome: DeliveryOutcome) {
        messages.add(MessageAttempt(kind: kind, outcome: MessageOutcomeLabel(outcome)))
    }

    func recordBacklog(_ backlog: Backlog, at now: Timestamp) { self.backlog.set(backlog, at: now) }

    func refused(_ fault: DecisionFault) { decisionsRefused.add(fault) }

    /// Counts a user who was locked or frozen by an answer of their own phone.
    func barred(_ state: UserState) { barred.add(state) }

    func certificate(_ outcome: CertificateOutcome) { certificates.add(outcome) }

    /// Counts a mail about an account event that nobody got.
    func unsent(_ reason: UnsentAnnouncement.Reason) { unsentAnnouncements.add(reason) }

    /// Counts a user whose codes were locked.
    func lockedCodes() { codeLocks.add() }

    /// Counts a change of a PIN, or a wrong PIN or PUK.
    func changed(pin outcome: PINOutcome) { pins.add(outcome) }

    /// Sets the held requests whose number the gauge shows.
    func show(_ heldRequests: HeldRequests) { self.heldRequests.show(heldRequests) }

    func rowsDeleted(_ kind: ExpiredRows.Kind, _ count: Int) {
        if count > 0 { tidied.add(kind, UInt64(count)) }
    }

    func storeFailed(_ word: StoreFailure.Word) { storeFailures.add(word) }
}

/// The cost of a DPoP proof of the right form.
enum ProofCost: String, CaseIterable {
    /// The store was queried for the phone with this key.
    case lookup
    /// The signature was verified.
    case signature
    /// Refused at once, because the key was not found a moment ago.
    case unknown
    /// Refused, because the sender has sent too many unknown keys.
    case limited
}

/// The limits that a relay enforces.
enum Limit: String, CaseIterable {
    /// Too many logins for a user: no challenge is opened, and the website gets 429.
    case login
    /// Too many pushes to a user: the challenge is opened as a quiet one.
    case push
    /// A code came too soon after a wrong one: it is not checked.
    case guess
    /// A challenge has used up its pushes and messages, or had one a moment ago, or a user got too
    /// many codes that confirm an address or bind a phone: nothing is sent.
    case sending
    /// A sender sent wrong activation codes, or many revocation codes: it has to wait.
    case code
    /// A sender asked for the signed time too often: it gets no statement.
    case time
    /// A sender said goodbye for phones too often: nothing is verified.
    case goodbye
    /// A phone reported its status, or asked for its secret, too often: nothing is stored.
    case report
    /// A phone or a sender asked for an account too often: nothing is read.
    case account
    /// The text messages of a user, a country or a day are used up: no message is begun.
    case sms
    /// A quota is used up: the requests of a caller in work, or the held requests or the users of a
    /// website.
    case requests, held, users
}

/// The result of checking a code that a website submitted.
enum CodeOutcome: String, CaseIterable {
    case right, wrong, void, early, locked
}

/// The label for the outcome of a push.
enum PushOutcomeLabel: String, CaseIterable {
    case accepted, retry, declined, ambiguous
    case tokenDead = "token_dead"
    case credentialFault = "credential_fault"
    case badRequest = "bad_request"

    init(_ outcome: DeliveryOutcome) {
        self =
            switch outcome {
            case .accepted: .accepted
            case .unregistered: .tokenDead
            case .retry, .unavailable: .retry
            case .misconfigured(.service, _): .credentialFault
            case .misconfigured(.message, _): .badRequest
            case .declined: .declined
            case .ambiguous: .ambiguous
            }
    }
}

/// The label for the outcome of a mail or a text message.
private enum MessageOutcomeLabel: String, CaseIterable {
    case accepted, refused, retry, undeliverable, ambiguous

    init(_ outcome: DeliveryOutcome) {
        self =
            switch outcome {
            case .accepted: .accepted
            case .unregistered: .refused
            case .retry, .unavailable: .retry
            case .misconfigured, .declined: .undeliverable
            case .ambiguous: .ambiguous
            }
    }
}

/// The gauge of held requests. It shows 0 until a relay is created.
private final class HeldRequestGauge: Sendable {
    private let heldRequests = Mutex<HeldRequests?>(nil)

    var count: Int64 { Int64(heldRequests.withLock { $0 }?.count ?? 0) }

    func show(_ heldRequests: HeldRequests) { self.heldRequests.withLock { $0 = heldRequests } }
}

/// The gauge of the push services that are down.
private final class ServicesDownGauge: Sendable {
    private let level = Atomic<Int64>(0)

    var count: Int64 { level.load(ordering: .relaxed) }

    func set(_ count: Int) { level.store(Int64(count), ordering: .relaxed) }
}

/// The gauge of the outbox. It shows the state at the last read.
private final class BacklogGauge: Sendable {
    private let level = Mutex((late: Duration.zero, dead: Int64(0)))

    var late: Duration { level.withLock { $0.late } }
    var dead: Int64 { level.withLock { $0.dead } }

    func set(_ backlog: Backlog, at now: Timestamp) {
        level.withLock { $0 = (backlog.oldestDue.map { now - $0 } ?? .zero, backlog.dead) }
    }
}

/// The labels of one attempt to hand over a mail or a text message.
private struct MessageAttempt: Hashable {
    let kind: MessageKind
    let outcome: MessageOutcomeLabel

    static let all = MessageKind.allCases.flatMap { kind in
        MessageOutcomeLabel.allCases.map { MessageAttempt(kind: kind, outcome: $0) }
    }
}

extension StoreFailure {
    enum Word: String, CaseIterable {
        case unavailable, broken, forged
    }
}
