import World

/// The client certificate behind a request, after TLS has verified it against one of the two
/// authorities. All requests of a connection share it.
public final class ClientCertificate: Sendable {
    public enum Authority: Sendable { case websites, phones }

    public let authority: Authority
    /// Every URI among the subject's alternative names, unchanged.
    public let uris: [String]
    /// SHA-256 of the SubjectPublicKeyInfo, which identifies the key.
    public let keyThumbprint: [UInt8]
    /// SHA-256 of the public key of the authority that signed it.
    public let issuer: [UInt8]
    /// The serial number in hexadecimal.
    public let serial: String
    public let notBefore: Timestamp
    public let notAfter: Timestamp

    public init(
        authority: Authority, uris: [String], keyThumbprint: [UInt8], issuer: [UInt8] = [], serial: String = "",
        notBefore: Timestamp = Timestamp(seconds: 0), notAfter: Timestamp = Timestamp(seconds: 0)
    ) {
        self.authority = authority
        self.uris = uris
        self.keyThumbprint = keyThumbprint
        self.issuer = issuer
        self.serial = serial
        self.notBefore = notBefore
        self.notAfter = notAfter
    }
}

/// A complete request. The body has arrived and is within the limit.
public struct Request: Sendable {
    /// The most bytes that a body may have. The server refuses a longer body while it reads it, and
    /// the API checks every request again.
    public static let bodyLimit = 65_536

    public var method: String
    /// The path as received (percent-encoded), without the query.
    public var path: String
    /// The query behind `?`, as received.
    public var query: String?
    /// The header fields, without the pseudo-fields.
    public var fields: Fields
    public var body: [UInt8]
    public var certificate: ClientCertificate?
    /// The address that the connection came from, for the log.
    public var remote: String
    /// Called when a proof in the request was accepted; nil if the server does not count callers.
    public var identification: (any CallerIdentification)?

    public init(
        method: String, path: String, query: String? = nil, fields: Fields = Fields(), body: [UInt8] = [],
        certificate: ClientCertificate? = nil, remote: String = ""
    ) {
        self.method = method
        self.path = path
        self.query = query
        self.fields = fields
        self.body = body
        self.certificate = certificate
        self.remote = remote
    }
}

public struct Response: Sendable, Equatable {
    public var status: Int
    public var fields: Fields
    public var body: [UInt8]
    /// Whether a response with this status can have content (RFC 9110 §6.4.1).
    public var mayHaveContent: Bool { status >= 200 && status != 204 && status != 304 }

    public init(status: Int, fields: Fields = Fields(), body: [UInt8] = []) {
        self.status = status
        self.fields = fields
        self.body = body
    }
}
