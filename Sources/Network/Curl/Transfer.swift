import Bytes
import HTTP

/// A request to a web server, with its limits.
public struct Transfer: Sendable {
    public var method: String
    public var url: TransferURL
    public var fields: Fields
    public var body: [UInt8]
    /// The time from the start to the outcome.
    public var deadline: Duration
    /// The most bytes of a response body.
    public var answerBytes: Int

    public init(
        method: String, url: TransferURL, fields: Fields = Fields(), body: [UInt8] = [],
        deadline: Duration = .seconds(10), answerBytes: Int = 65_536
    ) {
        self.method = method
        self.url = url
        self.fields = fields
        self.body = body
        self.deadline = deadline
        self.answerBytes = answerBytes
    }
}

/// The reason why there is no response.
public struct TransferFailure: Error, Sendable, Equatable, CustomStringConvertible {
    public enum Cause: Sendable, Equatable {
        /// The request is invalid: it has no method, or line breaks in its fields.
        case malformed
        /// `http:` is not allowed, in general or to that address.
        case insecure
        /// The limit of concurrent transfers is reached, for that server or for all.
        case busy
        /// All addresses of the name are refused by `AddressGuard`.
        case refusedAddress
        case unknownHost
        /// No connection, or no TLS over it. A server that restarts may also cause this.
        case unreachable
        /// The server's certificate is not trusted.
        case untrusted
        case deadline
        case cancelled
        /// The response exceeds its size limit.
        case tooLarge
        /// The connection broke, or the response is not HTTP.
        case broken
    }

    public let cause: Cause
    /// Whether the server may have received the request: false only if it certainly received
    /// nothing.
    public let mayHaveArrived: Bool
    /// The status of an incomplete response.
    public let status: Int?
    /// The fields of that response.
    public let fields: Fields
    public let reason: String

    public init(
        _ cause: Cause, mayHaveArrived: Bool, status: Int? = nil, fields: Fields = Fields(), _ reason: String
    ) {
        self.cause = cause
        self.mayHaveArrived = mayHaveArrived
        self.status = status
        self.fields = fields
        self.reason = reason
    }

    public var description: String { reason }
}

/// The options of all transfers of a client.
public struct WebClientOptions: Sendable {
    /// The addresses that may be connected to.
    public var addresses = AddressGuard()
    /// Certificates (PEM) of further authorities to trust, in addition to the system's.
    public var extraTrust: [UInt8]?
    /// Certificates (PEM) of the only authorities to trust; nil to trust the system's and `extraTrust`.
    public var onlyTrust: [UInt8]?
    public var plainHTTP = PlainHTTP.never
    /// The certificate for every server that asks for one. The caller has checked that chain and
    /// key match.
    public var clientCertificate: ClientCertificate?
    /// The highest number of concurrent transfers. Further ones are refused.
    public var transfers = 1000
    public var transfersPerServer = 64
    /// The highest number of transfers that have no connection yet, to servers without a recent
    /// connection. Names cost nothing, so an attacker with many unreachable names must leave
    /// capacity for others.
    public var transfersUnreached = 100
    /// Connections to one server. With HTTP/2 one is enough.
    public var connectionsPerServer = 4
    /// Idle connections that are kept for later transfers.
    public var idleConnections = 64
    /// If false, each transfer has its own connection, and libcurl never sends it a second time.
    public var keepsConnections = true
    /// The time for name resolution, TCP and TLS together.
    public var connectTimeout = Duration.seconds(5)
    /// The most bytes of all header fields of a response.
    public var headBytes = 32_768

    public init() {}

    /// The cases in which unencrypted requests to `http:` URLs are allowed.
    public enum PlainHTTP: Sendable, Equatable {
        case never
        case anywhere
        /// Only to addresses in the ranges of `addresses`, checked when a socket is opened.
        case namedRanges
    }

    public struct ClientCertificate: Sendable {
        /// The certificate and its intermediate certificates, in PEM.
        public let chain: [UInt8]
        /// The private key in PEM, without a passphrase.
        public let key: Secret

        public init(chain: [UInt8], key: Secret) {
            self.chain = chain
            self.key = key
        }
    }
}
