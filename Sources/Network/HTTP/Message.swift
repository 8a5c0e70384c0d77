/// The client certificate behind a request, after TLS has verified it against one of the two authorities.
public struct ClientCertificate: Sendable, Equatable {
    public enum Authority: Sendable { case websites, phones }

    public let authority: Authority
    /// Every URI among the subject's alternative names, as they stand.
    public let uris: [String]
    /// SHA-256 of the SubjectPublicKeyInfo: which key this is.
    public let keyThumbprint: [UInt8]

    public init(authority: Authority, uris: [String], keyThumbprint: [UInt8]) {
        self.authority = authority
        self.uris = uris
        self.keyThumbprint = keyThumbprint
    }
}

/// A whole request: the body has arrived, within the limit.
public struct Request: Sendable {
    public var method: String
    /// The path alone, as it came (percent-encoded).
    public var path: String
    /// What stood behind `?`, as it came.
    public var query: String?
    /// Without the pseudo-fields.
    public var fields: Fields
    public var body: [UInt8]
    public var certificate: ClientCertificate?
    /// The address that the connection came from, for the log.
    public var remote: String
    /// Is told when a proof in the request was accepted.
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

    public init(status: Int, fields: Fields = Fields(), body: [UInt8] = []) {
        self.status = status
        self.fields = fields
        self.body = body
    }
}
