import Bytes
import HTTP

/// A request to some server, and what it may cost.
public struct Transfer: Sendable {
    public var method: String
    public var url: TransferURL
    public var fields: Fields
    public var body: [UInt8]
    /// From here to the outcome, whatever happens.
    public var deadline: Duration
    /// The longest body that is taken as an answer.
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

/// Why there is no answer.
public struct TransferFailure: Error, Sendable, Equatable, CustomStringConvertible {
    public enum Cause: Sendable, Equatable {
        /// The request is none: it has no method, or line breaks in its fields.
        case malformed
        /// `http:`, where it is not allowed: not at all, or not to that address.
        case insecure
        /// As many are under way already as may be, to that server or to all.
        case busy
        /// The name leads only to addresses that may not be connected to.
        case refusedAddress
        case unknownHost
        /// No connection, or no TLS over it: a server that is being restarted breaks that off, too.
        case unreachable
        /// The server could not prove who it is.
        case untrusted
        case deadline
        case cancelled
        /// The answer is longer than it may be.
        case tooLarge
        /// The connection broke, or what came over it is no HTTP.
        case broken
    }

    public let cause: Cause
    /// False only where it is certain that the server has seen nothing of the request.
    public let mayHaveArrived: Bool
    /// Of an answer of which the rest did not come.
    public let status: Int?
    /// Those of that answer that did come.
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

/// What holds for all transfers of a client.
public struct WebClientOptions: Sendable {
    /// Where they may lead.
    public var addresses = AddressGuard()
    /// Certificates (PEM) that servers are believed by, besides the machine's.
    public var extraTrust: [UInt8]?
    public var plainHTTP = PlainHTTP.never
    /// Shown to every server that asks for one. Whoever sets it has found the two to fit together.
    public var clientCertificate: ClientCertificate?
    /// Transfers under way. More are refused.
    public var transfers = 1000
    public var transfersPerServer = 64
    /// Of those, the ones that have no connection yet, to servers that no connection stood to lately. Names cost nothing, and
    /// whoever brings many that lead nowhere is to leave room for others.
    public var transfersUnreached = 100
    /// To one server; with HTTP/2 one is enough.
    public var connectionsPerServer = 4
    /// Connections that are kept for the next transfer.
    public var idleConnections = 64
    /// False: each transfer has a connection of its own, and is never sent a second time by libcurl itself.
    public var keepsConnections = true
    /// Names, addresses and TLS together.
    public var connectTimeout = Duration.seconds(5)
    /// All header fields of an answer.
    public var headBytes = 32_768

    public init() {}

    /// Where requests may be read by anybody on the way: for `http:` TransferURLTests.
    public enum PlainHTTP: Sendable, Equatable {
        case never
        case anywhere
        /// To the addresses that the ranges of `addresses` name, looked at where a socket is opened.
        case namedRanges
    }

    public struct ClientCertificate: Sendable {
        /// PEM, with what leads to its authority.
        public let chain: [UInt8]
        /// PEM, without a passphrase.
        public let key: Secret

        public init(chain: [UInt8], key: Secret) {
            self.chain = chain
            self.key = key
        }
    }
}
