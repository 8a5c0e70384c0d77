/// A value from a list that later relays may extend. A value that this library does not name is
/// passed on, not refused.
public protocol RelayWord: RawRepresentable<String>, Sendable, Hashable, CustomStringConvertible {
    init(rawValue: String)
}

extension RelayWord {
    public var description: String { rawValue }
}

/// A factor: one way to authenticate.
public struct Factor: RelayWord {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }

    /// A notification to the user's phone, which the user answers there.
    public static let push = Factor(rawValue: "push")
    /// A request without a push, which the phone finds by polling.
    public static let pull = Factor(rawValue: "pull")
    /// A time-based code of an authenticator app or a token (RFC 6238).
    public static let totp = Factor(rawValue: "totp")
    /// A counter-based code of a hardware token (RFC 4226).
    public static let hotp = Factor(rawValue: "hotp")
    /// A code in a text message.
    public static let sms = Factor(rawValue: "sms")
    /// A code in a mail.
    public static let mail = Factor(rawValue: "mail")
    /// A printed code that works once.
    public static let recovery = Factor(rawValue: "recovery")
}

/// The method by which the answer of a successful login was authenticated.
public struct Proof: RelayWord {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }

    /// A phone's signature, which `ReceiptCheck` verifies. It is the only proof that requires no
    /// trust in the relay.
    public static let signed = Proof(rawValue: "signed")
    /// A phone's client certificate, without a signed decision.
    public static let certificate = Proof(rawValue: "certificate")
    /// A decision that the website itself posted for its user, without a phone's certificate or
    /// signature.
    public static let website = Proof(rawValue: "website")
    /// A code that the user entered on the website.
    public static let code = Proof(rawValue: "code")
}

/// The level of confidence in a success: `low` < `restricted` < `substantial` < `high`.
public struct Assurance: RelayWord {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }

    public static let high = Assurance(rawValue: "high")
    public static let substantial = Assurance(rawValue: "substantial")
    public static let restricted = Assurance(rawValue: "restricted")
    public static let low = Assurance(rawValue: "low")
}

/// The reason why a challenge failed.
public struct Reason: RelayWord {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }

    public static let denied = Reason(rawValue: "denied")
    /// The user reports that another person is trying to log in.
    public static let fraud = Reason(rawValue: "fraud")
    public static let wrongNumber = Reason(rawValue: "wrong_number")
    public static let expired = Reason(rawValue: "expired")
    public static let cancelled = Reason(rawValue: "cancelled")
    /// A later request for the same user replaced this one.
    public static let superseded = Reason(rawValue: "superseded")
    public static let undeliverable = Reason(rawValue: "undeliverable")
    public static let locked = Reason(rawValue: "locked")
    public static let frozen = Reason(rawValue: "frozen")
}

/// The state of a phone, of another factor, or of a user.
public struct AccountState: RelayWord {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }

    public static let waiting = AccountState(rawValue: "waiting")
    public static let active = AccountState(rawValue: "active")
    public static let suspended = AccountState(rawValue: "suspended")
    public static let revoked = AccountState(rawValue: "revoked")
    public static let locked = AccountState(rawValue: "locked")
    public static let frozen = AccountState(rawValue: "frozen")
}
