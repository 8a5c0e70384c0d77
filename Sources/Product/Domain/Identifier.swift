import Bytes
import World

/// A 128-bit identifier. Wire, log and SQL views use the same 32 hexadecimal digits, so that an
/// operator can follow a login through all three. The digits are also valid base64url.
public struct Identifier<Thing>: Hashable, Sendable, CustomStringConvertible {
    private let high: UInt64
    private let low: UInt64

    /// Creates an identifier; nil unless there are exactly 16 bytes.
    public init?(_ bytes: some Collection<UInt8>) {
        // Taken as an array, because generic code is not specialised for other modules, and would
        // cost a call for each byte. An array is not copied.
        let bytes = Array(bytes)
        guard bytes.count == 16 else { return nil }
        self.init(first16: bytes)
    }

    /// Creates an identifier from the first 16 bytes of a digest or of random bytes.
    public init(leading bytes: some Collection<UInt8>) {
        let bytes = Array(bytes)
        // Only the relay's own code passes bytes here: fewer than 16 are a bug.
        precondition(bytes.count >= 16, "an identifier needs 16 bytes, and \(bytes.count) are given")
        self.init(first16: bytes)
    }

    private init(first16 bytes: [UInt8]) {
        (high, low) = bytes.withUnsafeBytes { bytes in
            (
                UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
                UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
            )
        }
    }

    private init(_ high: UInt64, _ low: UInt64) { (self.high, self.low) = (high, low) }

    /// Returns a UUID of version 7 (RFC 9562 §5.7) with this time, and with the other bits of this id.
    /// Rows with such ids go to the end of their indexes.
    func timed(_ time: Timestamp) -> Identifier { timed(UInt64(truncatingIfNeeded: time.milliseconds)) }

    /// Returns a UUID of version 7 with the time of another one.
    func timed<Other>(as other: Identifier<Other>) -> Identifier { timed(other.high >> 16) }

    private func timed(_ milliseconds: UInt64) -> Identifier {
        Identifier(milliseconds << 16 | 0x7000 | high & 0x0fff, 1 << 63 | low & (1 << 62 - 1))
    }

    /// Parses the form of `text`; nil if the text has another form.
    public init?(_ text: String) {
        guard text.utf8.count == 32 else { return nil }
        var value: (high: UInt64, low: UInt64) = (0, 0)
        for digit in text.utf8 {
            guard let digit = Hex.value(of: digit) else { return nil }
            value = (value.high << 4 | value.low >> 60, value.low << 4 | UInt64(digit))
        }
        (high, low) = value
    }

    public var bytes: [UInt8] {
        withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) { Array($0) }
    }

    public var text: String {
        withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) { Hex.encode($0) }
    }
    public var description: String { text }
}

/// The kinds of things that identifiers name; never instantiated.
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
/// The opaque id by which a website knows its user. It differs from the user id, so that logs and
/// audit never contain it.
public typealias UserToken = Identifier<IdentifierKind.Token>
public typealias DeviceID = Identifier<IdentifierKind.Device>
public typealias ChallengeID = Identifier<IdentifierKind.Challenge>
public typealias OperationID = Identifier<IdentifierKind.Operation>
/// The id of an outbox entry; for a push it is also the `apns-id`.
public typealias OutboxEntryID = Identifier<IdentifierKind.OutboxEntry>
/// The id of a user's code factor, a row of the table `factor`.
public typealias FactorID = Identifier<IdentifierKind.Factor>
/// The id of a running relay process.
public typealias RelayID = Identifier<IdentifierKind.Relay>
