import Curl
import Domain
import HTTP
import Log
import Relay
import Webhooks
import World

/// Hands calls to the websites' servers. The operator has written where they go, and a website may have had a say in it: so
/// what one of them costs is bounded, none of them leads inside unless a setting names the place, and what one does is
/// nothing to another.
public final class HTTPWebhookCourier: WebhookCourier {
    public struct Options: Sendable {
        /// From `call` to its outcome, whatever happens. Less than the lease of what is called.
        public var deadline = Duration.seconds(15)
        public var client = WebClientOptions()

        public init() {
            client.plainHTTP = .namedRanges
            // Each website has few under way; no number of dead ones stops the rest. Some may live on one server.
            client.transfersUnreached = client.transfers
            client.transfersPerServer = client.transfers
            client.connectionsPerServer = 64
            client.headBytes = 16_384
        }
    }

    /// Nothing in an answer's body is of use to us. It is taken so that the connection can be kept.
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

    /// On a loop, whose connections carry it. On one that was kept libcurl may send it twice: the call has its id.
    public func call(_ call: WebhookRequest) async -> WebhookOutcome {
        guard let url = TransferURL(call.url) else {
            log.error("callback.url", [.message: call.id.text, .reason: "its website's callback is no URL"])
            return .unanswered(.broken)
        }
        let client: WebClient
        do {
            client = try clients.current()
        } catch {
            log.error("callback.client", [.message: call.id.text, .error: "\(error)"])
            return .unsent
        }
        var fields = Fields()
        for (name, value) in call.fields { fields.add(name, value) }
        fields.add("user-agent", "twoefay")
        let result = await client.send(
            Transfer(
                method: "POST", url: url, fields: fields, body: call.body, deadline: deadline,
                answerBytes: Self.answerBytes))
        if case .failure(let failure) = result, failure.status == nil, failure.cause != .cancelled {
            // Why exactly: an outcome knows a few kinds alone.
            log.notice(
                "callback.unanswered", [.message: call.id.text, .endpoint: url.origin, .reason: failure.reason])
        }
        return Self.outcome(of: result, at: time.now())
    }

    static func outcome(of result: Result<Response, TransferFailure>, at now: Timestamp) -> WebhookOutcome {
        switch result {
        case .success(let answer): answered(answer.status, answer.fields, at: now)
        case .failure(let failure):
            if let status = failure.status {
                // What an answer begins with is enough, whatever became of the rest.
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

    /// Closes the connections of all loops. What is on its way has not been tried.
    public func close() { clients.close() }
}
