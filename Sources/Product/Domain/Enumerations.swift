/// Words of the wire that several verbs share.

/// How an answer reached the relay, and so what the website has to trust for it.
public enum Proof: String, Sendable, CaseIterable {
    case signed, certificate, website, code
}

public enum Factor: String, Sendable, CaseIterable {
    case push, pull, totp, hotp, sms, mail, recovery
}

extension Factor {
    /// Those that are answered by a code that the user types.
    public static let codes: [Factor] = [.totp, .hotp, .sms, .mail, .recovery]

    /// Those that a website chooses among: a phone that asks by itself stands where its push would.
    public static let choices: [Factor] = [.push] + codes

    public var isCode: Bool { Factor.codes.contains(self) }

    /// Those whose codes the relay sends.
    public var isSent: Bool { self == .sms || self == .mail }
}

/// Whether a code factor counts already.
public enum FactorState: String, Sendable, CaseIterable {
    /// Not confirmed by a first code yet.
    case waiting
    case active
}

/// The hash of one-time codes, under the names it has in the store.
public enum OTPAlgorithm: String, Sendable, CaseIterable {
    case sha1, sha256, sha512
}

/// How much a success is worth (NIST SP 800-63B-4's words where it has some).
public enum Assurance: String, Sendable, CaseIterable, Comparable {
    case low, restricted, substantial, high

    /// What an answer by that factor is worth. A push is raised by a number that was asked, and by a phone that made sure
    /// of its owner.
    public init(factor: Factor, numberAsked: Bool, uv: UserVerification = .none) {
        switch factor {
        case .push, .pull: self = numberAsked || uv > .none ? .high : .substantial
        case .totp, .hotp, .recovery: self = .substantial
        case .sms: self = .restricted
        case .mail: self = .low
        }
    }

    private var rank: Int {
        switch self {
        case .low: 0
        case .restricted: 1
        case .substantial: 2
        case .high: 3
        }
    }

    public static func < (a: Assurance, b: Assurance) -> Bool { a.rank < b.rank }
}

/// How a phone made sure of its owner before it signed.
public enum UserVerification: String, Sendable, CaseIterable, Comparable {
    case none, passcode, biometric

    private var strength: Int {
        switch self {
        case .none: 0
        case .passcode: 1
        case .biometric: 2
        }
    }

    public static func < (a: UserVerification, b: UserVerification) -> Bool { a.strength < b.strength }
}

/// Whether a user can be asked at all.
public enum UserState: String, Sendable, CaseIterable {
    case active
    /// Too many wrong numbers, or an operator. Wrong codes lock codes alone: `CodeLockout`.
    case locked
    /// The user said that a login was not theirs.
    case frozen
}

/// Who approved of a further phone before its activation was made.
public enum Approval: String, Sendable, CaseIterable {
    case user, website, `operator`
}

/// Who changed a user or a phone.
public enum ChangeAuthor: String, Sendable, CaseIterable {
    case phone, website, `operator`
    /// Whoever had the revocation code, or a recovery code.
    case code
}

/// What websites and users are told of when it happens.
public enum AccountEvent: String, Sendable, CaseIterable {
    case deviceBound = "device.bound"
    case deviceUnbound = "device.unbound"
    case userFrozen = "user.frozen"
    case userLocked = "user.locked"
    case codesLocked = "codes.locked"
}

public enum StepState: String, Sendable, CaseIterable {
    case queued, sent, refused, undeliverable, seen, expired, answered, skipped
}

public enum DeviceState: String, Sendable, CaseIterable {
    case waiting, active, suspended, revoked
}

/// What a website can make of a phone that is bound, and undo.
public enum DeviceSwitch: String, Sendable, CaseIterable {
    case active, suspended

    public var state: DeviceState { self == .active ? .active : .suspended }
}

public enum Platform: String, Sendable, CaseIterable {
    case ios, android, web, other
}

public enum PushEnvironment: String, Sendable, CaseIterable {
    case production, sandbox
}
