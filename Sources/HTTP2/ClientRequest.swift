import HTTP

/// A request that this program makes.
public struct ClientRequest: Sendable {
    public var method: String
    /// With the query, if there is one.
    public var path: String
    public var authority: String
    public var fields: Fields
    /// Names of fields whose values are different every time: they would only push others out of the table.
    public var neverIndexed: Set<String>
    public var body: [UInt8]

    public init(
        method: String, path: String, authority: String, fields: Fields = Fields(), neverIndexed: Set<String> = [],
        body: [UInt8] = []
    ) {
        self.method = method
        self.path = path
        self.authority = authority
        self.fields = fields
        self.neverIndexed = neverIndexed
        self.body = body
    }
}
