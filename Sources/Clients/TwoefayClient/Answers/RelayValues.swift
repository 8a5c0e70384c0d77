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
    /// A temporary code of the help desk, for a user who has lost everything else.
    public static let `operator` = Factor(rawValue: "operator")
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
///
/// Compare levels with an explicit list of those that you accept, so that an unknown one is not
/// accepted.
public struct Assurance: RelayWord {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }

    /// A push or pull with a number, or with a phone that verified its owner.
    public static let high = Assurance(rawValue: "high")
    /// A push or pull without these; or a TOTP, HOTP or recovery code.
    public static let substantial = Assurance(rawValue: "substantial")
    /// A code in a text message.
    public static let restricted = Assurance(rawValue: "restricted")
    /// A code in a mail.
    public static let low = Assurance(rawValue: "low")
}

/// The reason why a challenge failed.
public struct Reason: RelayWord {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }

    /// The user denied the request.
    public static let denied = Reason(rawValue: "denied")
    /// The user reports that another person is trying to log in.
    public static let fraud = Reason(rawValue: "fraud")
    /// The user entered another number than the website showed.
    public static let wrongNumber = Reason(rawValue: "wrong_number")
    /// The user entered a wrong code, and the policy `code-retries` permits no further one.
    public static let wrongCode = Reason(rawValue: "wrong_code")
    /// The phone that approved is far from the login, and the policy `phone-place` refuses that.
    public static let place = Reason(rawValue: "place")
    /// Nobody answered within the lifetime of the challenge.
    public static let expired = Reason(rawValue: "expired")
    /// The website cancelled the challenge.
    public static let cancelled = Reason(rawValue: "cancelled")
    /// A later request for the same user replaced this one.
    public static let superseded = Reason(rawValue: "superseded")
    /// No factor could reach the user.
    public static let undeliverable = Reason(rawValue: "undeliverable")
    /// The user is locked.
    public static let locked = Reason(rawValue: "locked")
    /// The user is frozen after a fraud report.
    public static let frozen = Reason(rawValue: "frozen")
    /// The user has left the directory with which the relay syncs.
    public static let disabled = Reason(rawValue: "disabled")
    /// The expiry of the user has passed.
    public static let userExpired = Reason(rawValue: "user_expired")
}

/// An unfinished step of a user's enrolment, which the website can resume.
public struct EnrolmentStep: RelayWord {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }

    /// An operator must confirm that the person's identity was checked.
    public static let identity = EnrolmentStep(rawValue: "identity")
    /// No phone, app or token of the user was ever bound.
    public static let factor = EnrolmentStep(rawValue: "factor")
    /// The mail address waits for its code.
    public static let email = EnrolmentStep(rawValue: "email")
    /// The phone number waits for its code.
    public static let phone = EnrolmentStep(rawValue: "phone")
    /// A recovery code must be typed back before the new ones count.
    public static let recovery = EnrolmentStep(rawValue: "recovery")
}

/// The state of a phone, of another factor, or of a user.
public struct AccountState: RelayWord {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }

    /// A phone that waits for an approval, or a factor that waits for its first code.
    public static let waiting = AccountState(rawValue: "waiting")
    /// Ready for use.
    public static let active = AccountState(rawValue: "active")
    /// A phone that is disabled and can be resumed.
    public static let suspended = AccountState(rawValue: "suspended")
    /// A phone that was removed permanently.
    public static let revoked = AccountState(rawValue: "revoked")
    /// A user that is locked, or a factor that cannot be used because of a lock.
    public static let locked = AccountState(rawValue: "locked")
    /// A user that is frozen after a fraud report, or a factor of this user.
    public static let frozen = AccountState(rawValue: "frozen")
    /// A user who has left the directory with which the relay syncs, or a factor of this user.
    public static let disabled = AccountState(rawValue: "disabled")
    /// A user whose expiry has passed, or a phone or factor of this user.
    public static let expired = AccountState(rawValue: "expired")
}
