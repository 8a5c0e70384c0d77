import Crypto
import Curl
import DeliveryOutcomes
import EventLoop
import HTTP
import Log
import Synchronization
import World

/// A message for one subscriber.
public struct WebPushMessage: Sendable {
    public var subscription: PushSubscription
    /// The text, at most `MessageCoding.longest` bytes. It is encrypted before it is sent.
    public var text: [UInt8]
    /// The topic, at most 32 characters of base64url. A message replaces an earlier one of the same
    /// topic that the push service still stores.
    public var topic: String?
    /// The time from which the message is of no use to the subscriber.
    public var expiresAt: Timestamp
    /// The time from which sending it is of no use, if earlier than `expiresAt`.
    public var deliverBy: Timestamp?

    public init(
        subscription: PushSubscription, text: [UInt8], topic: String?, expiresAt: Timestamp,
        deliverBy: Timestamp? = nil
    ) {
        self.deliverBy = deliverBy
        self.subscription = subscription
        self.text = text
        self.topic = topic
        self.expiresAt = expiresAt
    }
}

/// A sender of messages to the push services of browsers and of UnifiedPush (RFC 8030). Users
/// choose these services, so each one is treated as hostile. The cost of a service is bounded, and
/// no service affects another.
public final class WebPushSender: Sendable {
    public struct Options: Sendable {
        /// The longest time from `send` to the outcome.
        public var deadline = Duration.seconds(9)
        public var client = WebClientOptions()

        public init() {
            // The bodies of answers are not used.
            client.headBytes = 16_384
            // Many subscribers share the services of a few browsers.
            client.transfersPerServer = 250
            client.transfers = 750
        }
    }

    static let answerBytes = 16_384

    private let vapid: VAPID
    private let time: any TimeSource
    private let randomness: any Randomness
    private let log: Log
    private let options: Options
    private let refusals = Mutex(RefusedSubscriptions())
    private let clients: WebClients

    public init(
        vapid: VAPID, time: any TimeSource, randomness: any Randomness, log: Log, options: Options = Options()
    ) {
        self.vapid = vapid
        self.time = time
        self.randomness = randomness
        self.log = log
        self.options = options
        clients = WebClients(options.client)
    }

    /// The public key that subscriptions are made for.
    public var applicationServerKey: String { vapid.applicationServerKey }

    /// The addresses to which the sender may connect.
    public var addresses: AddressGuard { options.client.addresses }

    /// Sends a message over the connections of the current loop. Must be called on a loop. Returns
    /// shortly after `options.deadline` at the latest.
    public func send(_ message: WebPushMessage) async -> DeliveryOutcome {
        let now = time.now()
        let left = min(message.deliverBy ?? message.expiresAt, message.expiresAt) - now
        guard left > .zero else { return .retry(after: .seconds(1), reason: "expired unsent") }
        let endpoint = message.subscription.endpoint
        if let reason = refusals.withLock({ $0.reason(endpoint.text, at: time.instant()) }) {
            return .declined(reason)
        }
        let client: WebClient
        let transfer: Transfer
        do {
            client = try clients.current()
            transfer = try self.transfer(message, at: now, within: left, on: client.loop)
        } catch {
            log.error("webpush.unsent", [.error: "\(error)"])
            return .misconfigured(.message, reason: "\(error)")
        }
        switch await client.send(transfer) {
        case .success(let answer):
            record(answer.status, of: endpoint)
            return WebPushAnswer.outcome(answer.status, answer.fields, sentAt: now, now: time.now())
        case .failure(let failure):
            if failure.status == nil {
                log.notice("webpush.unanswered", [.endpoint: endpoint.origin, .reason: failure.reason])
            }
            return WebPushAnswer.outcome(failure, sentAt: now, now: time.now())
        }
    }

    private func transfer(
        _ message: WebPushMessage, at now: Timestamp, within left: Duration, on loop: EventLoop
    ) throws(CryptoFailure) -> Transfer {
        let endpoint = message.subscription.endpoint
        var fields = Fields()
        fields.add("authorization", try vapid.authorization(for: endpoint.origin) { loop.post($0) })
        fields.add("ttl", String((message.expiresAt - now).components.seconds))
        fields.add("urgency", "high")
        if let topic = message.topic { fields.add("topic", topic) }
        fields.add("content-encoding", ContentCoding.name)
        fields.add("content-type", "application/octet-stream")
        return Transfer(
            method: "POST", url: endpoint, fields: fields,
            body: try MessageCoding.seal(message.text, for: message.subscription, randomness: randomness),
            deadline: min(left, options.deadline), answerBytes: Self.answerBytes)
    }

    /// Records whether the service accepted the credential. After a refusal nothing is sent to the
    /// subscription for a while. Only this subscription is affected: the same status means that the
    /// subscription was made for another key, and any user can submit one like that.
    private func record(_ status: Int, of endpoint: TransferURL) {
        guard status == 401 || status == 403 else { return refusals.withLock { $0.trusted(endpoint.text) } }
        let reason = "\(status)"
        if refusals.withLock({ $0.distrusted(endpoint.text, reason, at: time.instant()) }) {
            log.warning("webpush.credential.refused", [.endpoint: endpoint.origin, .reason: reason])
        }
    }

    /// Closes the connections of all loops. Messages on their way become ambiguous.
    public func close() { clients.close() }
}

/// The subscriptions that recently refused the relay's credential.
struct RefusedSubscriptions {
    static let pause = Duration.seconds(30)
    static let remembered = 1000
    /// The refusals by endpoint.
    private var refused: [String: (reason: String, since: Instant)] = [:]

    /// Returns the reason why nothing is sent there now; nil if a message may be sent.
    mutating func reason(_ endpoint: String, at now: Instant) -> String? {
        guard let (reason, since) = refused[endpoint] else { return nil }
        if now - since < Self.pause { return reason }
        // This message is a trial. The pause starts again, so that the others wait for its result.
        refused[endpoint] = (reason, now)
        return nil
    }

    mutating func trusted(_ endpoint: String) { refused[endpoint] = nil }

    /// Records a refusal. Returns false if the subscription was recorded already.
    mutating func distrusted(_ endpoint: String, _ reason: String, at now: Instant) -> Bool {
        defer { refused[endpoint] = (reason, now) }
        if refused[endpoint] != nil { return false }
        if refused.count >= Self.remembered, let oldest = refused.min(by: { $0.value.since < $1.value.since }) {
            refused[oldest.key] = nil
        }
        return true
    }
}
