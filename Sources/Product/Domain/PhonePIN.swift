/// The PIN of a phone as the relay knows it: the public keys that belong to the PIN and to its PUK,
/// and how many wrong ones came in a row.
///
/// The phone derives the private keys from what the person types and from a secret that never leaves
/// it. So neither the phone alone nor the store alone shows whether a PIN is right.
public struct PhonePIN: Sendable, Equatable {
    /// The wrong PINs in a row that lock the PIN.
    public static let tries = 3
    /// The wrong PUKs in a row that lock the PUK.
    public static let pukTries = 5

    public enum State: String, Sendable, CaseIterable {
        case none, set, locked
    }

    /// The public key of the PIN, P-256, uncompressed; nil if no PIN is set.
    public var key: [UInt8]?
    /// The public key of the PUK; nil if no PIN is set.
    public var pukKey: [UInt8]?
    /// Counts the settings of the PIN. A statement names the version that it makes, so that it
    /// counts once.
    public var version: Int
    public var failures: Int
    public var pukFailures: Int
    /// The code of the help desk that nobody has used; nil if there is none. It may have expired.
    public var unlock: UnlockCode.Issued?

    public init(
        key: [UInt8]? = nil, pukKey: [UInt8]? = nil, version: Int = 0, failures: Int = 0, pukFailures: Int = 0,
        unlock: UnlockCode.Issued? = nil
    ) {
        self.unlock = unlock
        self.key = key
        self.pukKey = pukKey
        self.version = version
        self.failures = failures
        self.pukFailures = pukFailures
    }

    public var isLocked: Bool { key != nil && failures >= Self.tries }
    public var isPUKLocked: Bool { key != nil && pukFailures >= Self.pukTries }
    public var state: State { key == nil ? .none : isLocked ? .locked : .set }
    public var triesLeft: Int { max(0, Self.tries - failures) }
    public var pukTriesLeft: Int { max(0, Self.pukTries - pukFailures) }
}

/// The use of PINs at a website.
public enum PINUse: String, Sendable, CaseIterable {
    /// PINs do not count.
    case none
    /// A phone that has a PIN needs it for each approval; other phones approve without one.
    case optional
    /// Only phones with a PIN can approve.
    case required
}
