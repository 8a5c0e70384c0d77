import Bytes
import World

/// The code with which a help desk lets a person set a new PIN on a phone: an HOTP code (RFC 4226)
/// that the help desk reads out and the person types into the app.
///
/// The code proves to the relay that an operator has permitted the new PIN. The phone's own key
/// signs it, so without that phone the code is worth nothing. Each code has a secret of its own,
/// and its counter is the number of codes of the phone so far. A further code makes the one before
/// void.
public enum UnlockCode {
    public static let digits = 8
    /// The wrong codes that make a code void.
    public static let tries = 5
    /// The time for which a code is valid.
    public static let lifetime = Duration.seconds(600)

    /// A code that the help desk has got and nobody has used.
    public struct Issued: Sendable, Equatable {
        /// The operation that issued the code; its secret is stored under it.
        public let operation: OperationID
        public let counter: Int64
        public let expiresAt: Timestamp
        public var failures: Int

        public init(operation: OperationID, counter: Int64, expiresAt: Timestamp, failures: Int) {
            self.operation = operation
            self.counter = counter
            self.expiresAt = expiresAt
            self.failures = failures
        }

        public func isOpen(at now: Timestamp) -> Bool { failures < UnlockCode.tries && now < expiresAt }

        public var triesLeft: Int { max(0, UnlockCode.tries - failures) }
    }

    /// Returns the code with this counter.
    public static func text(_ secret: OperationSecret, counter: Int64) -> String {
        OTP.code(
            secret: Secret(secret.derive("unlock code", count: 20)), counter: UInt64(clamping: counter),
            algorithm: .sha1, digits: digits)
    }

    /// Whether the text can be a code.
    public static func isCode(_ text: String) -> Bool {
        text.utf8.count == digits && text.utf8.allSatisfy { (0x30...0x39).contains($0) }
    }
}
