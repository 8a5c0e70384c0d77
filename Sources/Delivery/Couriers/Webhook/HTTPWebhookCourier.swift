import Curl
import Domain
import HTTP
import Log
import Relay
import Webhooks
import World

/// The courier for webhooks. The operator sets the URLs, and a website may influence them, so three
/// rules apply. The cost of one website is bounded. No request goes to an internal address unless a
/// setting permits it. No website affects another.
public final class HTTPWebhookCourier: WebhookCourier {
    public struct Options: Sendable {
        /// The longest time from `call` to the outcome; less than the lease of the outbox entry.
        public var deadline = Duration.seconds(15)
        public var client = WebClientOptions()

        public init() {
            client.plainHTTP = .namedRanges
            // Each website has few webhooks under way until it answers quickly, and all together have a
            // limit (`WebhookQueues.mostExtra`), so unreachable servers cannot stop the rest.
            // Several websites may share a server.
            client.transfersUnreached = client.transfers
            client.transfersPerServer = client.transfers
            client.connectionsPerServer = 64
            client.headBytes = 16_384
        }
    }

    /// The number of body bytes to read. The body is not used; it is read so that the connection
    /// can be kept.
    static let answerBytes = 16_384

    private let clients: WebClients
    private let deadline: Duration
    private let time: any TimeSource
    private let log: Log

    public init(time: any TimeSource, log: Log, options: Options = Options()) {
        clients = WebClients(options.client)
        deadline = options.deadline
        self.time = time
        self.log = log
    }

    /// Sends a webhook over the connections of the current loop. Must be called on a loop. On a
    /// kept connection libcurl may send it twice; the webhook id lets the receiver recognize that.
    public func send(_ webhook: WebhookRequest) async -> WebhookOutcome {
        guard let url = TransferURL(webhook.url) else {
            log.error("webhook.url", [.message: webhook.id.text, .reason: "the website's webhook URL is invalid"])
            return .unanswered(.broken)
        }
        let client: WebClient
        do {
            client = try clients.current()
        } catch {
            log.error("webhook.client", [.message: webhook.id.text, .error: "\(error)"])
            return .unsent
        }
        var fields = Fields()
        for (name, value) in webhook.fields { fields.add(name, value) }
        fields.add("user-agent", "twoefay")
        let result = await client.send(
            Transfer(
                method: "POST", url: url, fields: fields, body: webhook.body, deadline: deadline,
                answerBytes: Self.answerBytes))
        if case .failure(let failure) = result, failure.status == nil, failure.cause != .cancelled {
            // The log has the exact reason; an outcome distinguishes only a few kinds.
            log.notice(
                "webhook.unanswered", [.message: webhook.id.text, .endpoint: url.origin, .reason: failure.reason])
        }
        return Self.outcome(of: result, at: time.now())
    }

    static func outcome(of result: Result<Response, TransferFailure>, at now: Timestamp) -> WebhookOutcome {
        switch result {
        case .success(let answer): answered(answer.status, answer.fields, at: now)
        case .failure(let failure):
            if let status = failure.status {
                // The head of the answer is enough, even if the rest did not arrive.
                answered(status, failure.fields, at: now)
            } else {
                unanswered(failure.cause)
            }
        }
    }

    private static func answered(_ status: Int, _ fields: Fields, at now: Timestamp) -> WebhookOutcome {
        .answered(status: status, retryAfter: fields["retry-after"].flatMap { RetryAfter.wait($0, at: now) })
    }

    private static func unanswered(_ cause: TransferFailure.Cause) -> WebhookOutcome {
        switch cause {
        case .busy, .cancelled: .unsent
        case .insecure: .unanswered(.insecure)
        case .refusedAddress: .unanswered(.refusedAddress)
        case .unknownHost: .unanswered(.unknownHost)
        case .unreachable: .unanswered(.unreachable)
        case .untrusted: .unanswered(.untrusted)
        case .deadline: .unanswered(.timeout)
        case .malformed, .tooLarge, .broken: .unanswered(.broken)
        }
    }

    /// Closes the connections of all loops. Webhooks on their way do not count as attempts.
    public func close() { clients.close() }
}
