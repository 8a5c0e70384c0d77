/// Something in the audit that is not as its writers wrote it.
public struct AuditFinding: Sendable, Equatable {
    public enum Kind: String, Sendable {
        /// A row differs from the one that was written.
        case changed
        /// A row is missing.
        case removed
        /// No link has the row: somebody inserted it, or its link is missing.
        case inserted
        /// A link was changed, inserted, or is missing in the middle of a chain.
        case link
        /// The end of a chain is missing.
        case truncated
        /// The words of a row were changed, or are missing although the user was not deleted.
        case detail
        /// A writer or its checkpoint is not genuine.
        case writer
        /// A head was not signed by its writer.
        case head
    }

    public let kind: Kind
    public var writer: [UInt8]?
    /// The number of the link, or the first one of several.
    public var link: Int64?
    public var id: Int64?
    public var operation: [UInt8]?
    public let text: String

    init(
        _ kind: Kind, writer: [UInt8]? = nil, link: Int64? = nil, id: Int64? = nil, operation: [UInt8]? = nil,
        _ text: String
    ) {
        self.kind = kind
        self.writer = writer
        self.link = link
        self.id = id
        self.operation = operation
        self.text = text
    }
}
