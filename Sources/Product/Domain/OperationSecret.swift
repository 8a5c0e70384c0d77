import Bytes
import Crypto
import World

/// The random secret of one operation. Everything that is shown to a user or website once (codes,
/// keys, tokens) is derived from it.
///
/// It is drawn once, before the first attempt, and the same value serves every attempt in this
/// process. It is never derived from an id or the master key, so later knowledge of either reveals
/// nothing. An operation that may be repeated elsewhere stores it sealed, in the transaction of the
/// change, until repetitions end. A repetition answers with the stored secret.
public struct OperationSecret: Sendable {
    static let count = 32

    private let secret: Secret

    public init(drawnFrom randomness: any Randomness) {
        secret = Secret(randomness.bytes(Self.count))
    }

    /// Creates a secret from the bytes that `reveal` returned; nil if their number is wrong.
    public init?(_ bytes: [UInt8]) {
        guard bytes.count == Self.count else { return nil }
        secret = Secret(bytes)
    }

    /// Returns the bytes themselves, to be sealed.
    public func reveal() -> [UInt8] { secret.reveal() }

    /// Returns up to 32 bytes, different for every label.
    public func derive(_ label: String, count: Int) -> [UInt8] {
        Array(HMAC.sha256(key: secret, Array(label.utf8)).prefix(count))
    }
}

extension OperationSecret {
    /// The verb, user and website for which a stored secret was drawn.
    public struct Use: Sendable {
        /// The verb that shows values derived from the secret.
        public enum Verb: String, Sendable, CaseIterable {
            case registration, activation, activationMail, totp, recovery, binding, recoveryMail, recoveryHandle,
                unlockCode
        }

        private let verb: Verb
        private let user: UserID
        private let website: WebsiteID

        public init(_ verb: Verb, user: UserID, website: WebsiteID) {
            self.verb = verb
            self.user = user
            self.website = website
        }

        /// Returns the associated data of the sealed secret. In the row of another operation, or
        /// for another verb, user or website, it cannot be decrypted.
        public func associated(_ operation: OperationID) -> [UInt8] {
            Array("twoefay operation secret".utf8) + website.bytes + user.bytes + operation.bytes
                + Array(verb.rawValue.utf8)
        }
    }
}
