/// A source of users: an LDAP directory or a CSV file.
public protocol DirectorySource: Sendable {
    /// Reads the source to its end. It may block, so it must not be called on a loop.
    func read() throws(DirectoryFailure) -> DirectoryContent
}

/// The reason why a source could not be read to its end. Nothing of it is used then.
public struct DirectoryFailure: Error, Sendable, Equatable {
    public let message: String
    /// The next step of the operator.
    public let next: String

    public init(_ message: String, next: String) {
        self.message = message
        self.next = next
    }
}
