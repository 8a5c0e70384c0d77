import Bytes
import Curl
import EventLoop
import HTTP
import World

/// The protocol of one kind of HTTP gateway: how a message becomes a request, and what the answers
/// mean.
public protocol HTTPGatewayDialect: Sendable {
    /// Returns the request for a message; nil if the message cannot be expressed.
    func request(for message: SMSMessage) -> HTTPGatewayRequest?
    func outcome(of answer: Response) -> GatewayOutcome
}

/// The HTTP request that carries one message to a gateway.
public struct HTTPGatewayRequest: Sendable {
    public var method: String
    public var url: TransferURL
    public var fields: Fields
    public var body: [UInt8]

    public init(method: String, url: TransferURL, fields: Fields = Fields(), body: [UInt8] = []) {
        self.method = method
        self.url = url
        self.fields = fields
        self.body = body
    }
}

/// A gateway with an HTTP interface. Each message uses a new connection. On a reused connection,
/// libcurl repeats a request that got no answer, so the message could arrive twice.
public final class HTTPGateway: SMSGateway {
    public struct Options: Sendable {
        /// Certificates (PEM) of authorities to trust in addition to the system's.
        public var extraTrust: [UInt8]?
        public var connectTimeout = Duration.seconds(5)
        /// Messages under way on one loop. Further ones do not wait: the dispatcher tries another
        /// gateway.
        public var transfers = 32

        public init() {}
    }

    static let answerBytes = 65_536

    public let name: String
    private let dialect: any HTTPGatewayDialect
    private let clients: WebClients

    public init(name: String, dialect: any HTTPGatewayDialect, options: Options = Options()) {
        self.name = name
        self.dialect = dialect
        var client = WebClientOptions()
        // The operator sets the URL, so addresses are not restricted.
        client.addresses = .none
        client.plainHTTP = .anywhere
        client.extraTrust = options.extraTrust
        client.connectTimeout = options.connectTimeout
        client.transfers = options.transfers
        client.transfersPerServer = options.transfers
        client.transfersUnreached = options.transfers
        client.connectionsPerServer = options.transfers
        client.keepsConnections = false
        clients = WebClients(client)
    }

    public func send(_ message: SMSMessage, within limit: Duration) async -> GatewayOutcome {
        guard let asking = dialect.request(for: message) else {
            return .unsuited("it cannot send this message")
        }
        let client: WebClient
        do {
            client = try clients.current()
        } catch {
            return .down("\(error)")
        }
        let transfer = Transfer(
            method: asking.method, url: asking.url, fields: asking.fields, body: asking.body, deadline: limit,
            answerBytes: Self.answerBytes)
        switch await client.send(transfer) {
        case .success(let answer): return dialect.outcome(of: answer)
        case .failure(let failure): return judge(failure)
        }
    }

    private func judge(_ failure: TransferFailure) -> GatewayOutcome {
        // The head of the answer is enough if it is a refusal.
        if let status = failure.status, !(200..<300).contains(status) {
            return dialect.outcome(of: Response(status: status, fields: failure.fields))
        }
        if failure.mayHaveArrived { return .ambiguous(failure.reason) }
        switch failure.cause {
        case .malformed, .insecure, .refusedAddress, .untrusted: return .fault(failure.reason)
        case .busy: return .full(failure.reason)
        case .unknownHost, .unreachable, .deadline, .cancelled, .tooLarge, .broken: return .down(failure.reason)
        }
    }

    public func close() async { clients.close() }
}

extension GatewayOutcome {
    /// Returns the usual meaning of an answer that the dialect does not define.
    static func usual(_ answer: Response) -> GatewayOutcome {
        let status = answer.status
        switch status {
        // A server that fails halfway may have sent the message before.
        case 500..<600 where status != 503: return .ambiguous("\(status)")
        case 429, 503: return .busy(pause(answer.fields), "\(status)")
        case 401, 407: return .fault("\(status): check the username and password")
        case 403: return .fault("403: the account may not send")
        case 404, 405, 410: return .fault("\(status): check the URL")
        case 400..<500: return .unsuited("\(status)")
        case 300..<400: return .fault("\(status): redirects are not followed")
        default: return .ambiguous("\(status), which has no meaning here")
        }
    }

    /// Returns the pause in seconds, at most an hour. A date in Retry-After is ignored.
    private static func pause(_ fields: Fields) -> Duration? {
        fields["retry-after"].flatMap { Int64($0) }.map { .seconds(min(max($0, 1), 3600)) }
    }
}

/// Basic authentication (RFC 7617).
enum BasicAuthorization {
    static func value(_ username: String, _ password: Secret) -> String {
        "Basic " + Base64.encode(Array("\(username):".utf8) + password.reveal())
    }
}
