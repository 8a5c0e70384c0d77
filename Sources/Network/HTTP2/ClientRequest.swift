import HTTP

/// A request that this program makes.
public struct ClientRequest: Sendable {
    public var method: String
    /// With the query, if there is one.
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

/// What many requests have in common, put together once.
public struct RequestForm: Sendable {
    let head: Fields
    let rest: Fields

    public init(method: String, scheme: String = "https", authority: String, fields: Fields) {
        head = Fields([.init(":method", method), .init(":scheme", scheme), .init(":authority", authority)])
        rest = fields
    }

    /// All of it, for those who look at what they have put together.
    public var fields: [Fields.Field] { head.all + rest.all }
}

/// A request of such a form: what is its own.
public struct FormedRequest: Sendable {
    /// The path comes first.
    private(set) var own = Fields()
    public var body: [UInt8]

    public init(path: String, body: [UInt8]) {
        own.add(":path", path)
        self.body = body
    }

    /// A field whose value is different every time: in the table it would only push others out.
    public mutating func add(_ name: String, _ value: String) { own.add(name, value) }

    /// The path and the fields, for those who look at what they have put together.
    public var fields: [Fields.Field] { own.all }
}
