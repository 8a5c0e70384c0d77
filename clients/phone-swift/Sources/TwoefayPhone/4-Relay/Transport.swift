/// Sends requests to the relay: over URLSession on Apple's platforms (`URLSessionTransport`).
///
/// The implementation checks the relay before it sends anything: `PinRule` chooses the anchor among
/// the certificates of the connection, and the system then verifies that the relay's certificate
/// leads to this anchor alone, is for the host of the origin, is one of a server, and is valid at
/// the time that `ServerTrust.dates` says. It follows no redirects, keeps no cookies, caches
/// nothing and logs nothing.
public protocol Transport: Sendable {
    /// Sends a request and returns the answer, refusals included.
    ///
    /// - Parameter isFresh: whether the request needs a new connection. Later requests use it, too.
    func send(
        _ request: RelayRequest, to server: ServerTrust, isFresh: Bool
    ) async throws(TransportFailure) -> RelayReply
}

public struct RelayRequest: Sendable, Equatable {
    public var method: String
    /// The path, which begins with a slash.
    public var path: String
    /// The header fields, with names in lower case.
    public var fields: [String: String] = [:]
    /// The body; nil for GET and DELETE.
    public var body: JSONObject?
    /// The longest time until the answer, in seconds.
    public var timeout = 10

    public init(_ method: String, _ path: String, _ body: JSONObject? = nil) {
        self.method = method
        self.path = path
        self.body = body
        if body != nil { fields["content-type"] = "application/json" }
    }
}

/// The answer, with the certificate of its connection.
public struct RelayReply: Sendable {
    public let status: Int
    /// The header fields, with names in lower case.
    public let fields: [String: String]
    public let body: [UInt8]
    /// The relay's own certificate in DER. Signed statements are checked with it. If the connection
    /// was used before, it is that of its handshake.
    public let certificate: [UInt8]

    public init(status: Int, fields: [String: String], body: [UInt8], certificate: [UInt8]) {
        self.status = status
        self.fields = fields
        self.body = body
        self.certificate = certificate
    }
}

/// The server that a connection must lead to. A connection is used only for the trust with which it
/// was opened.
public struct ServerTrust: Sendable, Hashable {
    public enum Dates: Sendable, Hashable {
        /// The certificates must be valid at the phone's time plus these milliseconds.
        case checked(offset: Int64)
        /// The dates do not count. Only for the request for the relay's time.
        case unchecked
    }

    public let origin: RelayOrigin
    public let pins: [[UInt8]]
    public let dates: Dates

    public init(origin: RelayOrigin, pins: [[UInt8]], dates: Dates) {
        self.origin = origin
        self.pins = pins
        self.dates = dates
    }
}

public enum TransportFailure: Error, Sendable, Equatable {
    /// The server is not the relay, or the dates of its certificate do not fit. Nothing was sent.
    case untrusted(String)
    /// The relay was not reached, so it has certainly done nothing.
    case notSent(String)
    /// The answer is missing: the relay may or may not have done the work.
    case noAnswer(String)
}
