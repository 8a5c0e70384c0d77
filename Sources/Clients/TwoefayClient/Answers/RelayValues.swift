/// A word of the relay's. A later relay may have more of them than are named here: they are carried, not refused.
public protocol RelayWord: RawRepresentable<String>, Sendable, Hashable, CustomStringConvertible {
    init(rawValue: String)
}

extension RelayWord {
    public var description: String { rawValue }
}

/// What a user answers with.
public struct Factor: RelayWord {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }

    public static let push = Factor(rawValue: "push")
    /// The phone has to look by itself.
    public static let pull = Factor(rawValue: "pull")
    public static let totp = Factor(rawValue: "totp")
    public static let hotp = Factor(rawValue: "hotp")
    public static let sms = Factor(rawValue: "sms")
    public static let mail = Factor(rawValue: "mail")
    public static let recovery = Factor(rawValue: "recovery")
}

/// What stands behind a success.
public struct Proof: RelayWord {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }

    /// A phone's signature, which `ReceiptCheck` checks: the only one for which the relay need not be trusted.
    public static let signed = Proof(rawValue: "signed")
    public static let certificate = Proof(rawValue: "certificate")
    public static let website = Proof(rawValue: "website")
    public static let code = Proof(rawValue: "code")
}

/// How much a success is worth; `low` < `restricted` < `substantial` < `high`.
public struct Assurance: RelayWord {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }

    public static let high = Assurance(rawValue: "high")
    public static let substantial = Assurance(rawValue: "substantial")
    public static let restricted = Assurance(rawValue: "restricted")
    public static let low = Assurance(rawValue: "low")
}

/// Why a challenge failed.
public struct Reason: RelayWord {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }

    public static let denied = Reason(rawValue: "denied")
    /// The user says that somebody else is logging in.
    public static let fraud = Reason(rawValue: "fraud")
    public static let wrongNumber = Reason(rawValue: "wrong_number")
    public static let expired = Reason(rawValue: "expired")
    public static let cancelled = Reason(rawValue: "cancelled")
    /// The same user was asked something later.
    public static let superseded = Reason(rawValue: "superseded")
    public static let undeliverable = Reason(rawValue: "undeliverable")
    public static let locked = Reason(rawValue: "locked")
    public static let frozen = Reason(rawValue: "frozen")
}

/// Of a phone, of another factor, or of a user.
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
