import HTTP

/// A request that this program sends as a client.
public struct ClientRequest: Sendable {
    public var method: String
    /// The path, with the query if there is one.
    public var path: String
    public var authority: String
    public var fields: Fields
    public var body: [UInt8]

    public init(
        method: String, path: String, authority: String, fields: Fields = Fields(), body: [UInt8] = []
    ) {
        self.method = method
        self.path = path
        self.authority = authority
        self.fields = fields
        self.body = body
    }
}

/// The fields that many requests have in common, encoded once.
public struct RequestForm: Sendable {
    let head: Fields
    let rest: Fields

    public init(method: String, scheme: String = "https", authority: String, fields: Fields) {
        head = Fields([.init(":method", method), .init(":scheme", scheme), .init(":authority", authority)])
        rest = fields
    }

    /// All fields, for code that inspects the form.
    public var fields: [Fields.Field] { head.all + rest.all }
}

/// The path, fields and body that differ between the requests of one form.
public struct FormedRequest: Sendable {
    /// The own fields; the path is the first one.
    private(set) var own = Fields()
    public var body: [UInt8]

    public init(path: String, body: [UInt8]) {
        own.add(":path", path)
        self.body = body
    }

    /// Adds a field whose value differs in every request. It is not indexed, because in the HPACK
    /// table it would only evict other fields.
    public mutating func add(_ name: String, _ value: String) { own.add(name, value) }

    /// The path and the fields, for code that inspects the request.
    public var fields: [Fields.Field] { own.all }
}
