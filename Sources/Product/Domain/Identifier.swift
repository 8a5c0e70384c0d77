import Bytes

/// 128 bits that name one thing. On the wire, in the log and in the SQL views it is the same 32 hexadecimal digits
/// (which are base64url too), so that an operator can follow one login through all three.
public struct Identifier<Thing>: Hashable, Sendable, CustomStringConvertible {
    private let high: UInt64
    private let low: UInt64

    /// Nil unless there are exactly 16 bytes.
    public init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == 16 else { return nil }
        high = bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        low = bytes.dropFirst(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Makes an identifier of the first 16 bytes of a digest or of random bytes.
    public init(leading bytes: some Collection<UInt8>) {
        guard let identifier = Self(bytes.prefix(16)) else {
            // Only our own code passes bytes here, and always at least 16 of them: fewer are our own bug.
            preconditionFailure("an identifier needs 16 bytes, and \(bytes.count) are given")
        }
        self = identifier
    }

    /// Nil unless the text is what `text` of some identifier is.
    public init?(_ text: String) {
        guard text.utf8.count == 32, let bytes = Hex.decode(text) else { return nil }
        self.init(bytes)
    }

    public var bytes: [UInt8] {
        (0..<16).map { UInt8(truncatingIfNeeded: ($0 < 8 ? high : low) >> UInt64(56 - $0 % 8 * 8)) }
    }

    public var text: String { Hex.encode(bytes) }
    public var description: String { text }
}

/// What identifiers name; never instantiated.
public enum IdentifierKind {
    public enum Website: Sendable {}
    public enum User: Sendable {}
    public enum Token: Sendable {}
    public enum Device: Sendable {}
    public enum Challenge: Sendable {}
    public enum Operation: Sendable {}
    public enum OutboxEntry: Sendable {}
    public enum Relay: Sendable {}
    public enum Factor: Sendable {}
}

public typealias WebsiteID = Identifier<IdentifierKind.Website>
public typealias UserID = Identifier<IdentifierKind.User>
/// What a website knows its user by. Apart from the id, so that logs and audit never hold one.
public typealias UserToken = Identifier<IdentifierKind.Token>
public typealias DeviceID = Identifier<IdentifierKind.Device>
public typealias ChallengeID = Identifier<IdentifierKind.Challenge>
public typealias OperationID = Identifier<IdentifierKind.Operation>
/// A row of the outbox; for a push it is the `apns-id` too.
public typealias OutboxEntryID = Identifier<IdentifierKind.OutboxEntry>
/// A code factor of a user: a row of the table of that name.
public typealias FactorID = Identifier<IdentifierKind.Factor>
/// One running relay process.
public typealias RelayID = Identifier<IdentifierKind.Relay>
