import Bytes
import Crypto
import World

/// The random secret of one operation. Everything that is shown to a person or a website once (codes, keys, tokens) is
/// derived from it.
///
/// It is drawn once, before the first attempt, and the same value serves every attempt in this
/// process. It never follows from an id or from the master key: whoever gets hold of either later
/// learns nothing. An operation that may be repeated elsewhere stores it sealed, in the transaction
/// of the change, until repetitions end; a repetition answers with the stored one.
public struct OperationSecret: Sendable {
    static let count = 32

    private let secret: Secret

    public init(drawnFrom randomness: any Randomness) {
        secret = Secret(randomness.bytes(Self.count))
    }

    /// Returns nil unless the bytes are what `reveal` returned for some secret.
    public init?(_ bytes: [UInt8]) {
        guard bytes.count == Self.count else { return nil }
        secret = Secret(bytes)
    }

    /// The bytes themselves, to be sealed.
    public func reveal() -> [UInt8] { secret.reveal() }

    /// Up to 32 bytes, different for every label.
    public func derive(_ label: String, count: Int) -> [UInt8] {
        Array(HMAC.sha256(key: secret, Array(label.utf8)).prefix(count))
    }
}

extension OperationSecret {
    /// The verb, user and website that a stored secret was drawn for.
    public struct Use: Sendable {
        /// The verb that shows what is derived from the secret.
        public enum Verb: String, Sendable, CaseIterable {
            case registration, activation, totp, recovery, binding
        }

        private let verb: Verb
        private let user: UserID
        private let website: WebsiteID

        public init(_ verb: Verb, user: UserID, website: WebsiteID) {
            self.verb = verb
            self.user = user
            self.website = website
        }

        /// The associated data of the sealed secret: in the row of another operation, or read by another verb or for
        /// another user, it does not open.
        public func associated(_ operation: OperationID) -> [UInt8] {
            Array("twoefay operation secret".utf8) + website.bytes + user.bytes + operation.bytes
                + Array(verb.rawValue.utf8)
        }
    }
}
