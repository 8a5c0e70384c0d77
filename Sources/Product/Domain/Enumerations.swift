import World

/// Values of the wire format that several verbs share.

/// The authentication of an answer, which determines whom the website has to trust.
public enum Proof: String, Sendable, CaseIterable {
    case signed, certificate, website, code
}

/// A way to authenticate. `pull` is a login without push, which the phone finds by polling
/// `/pending`.
public enum Factor: String, Sendable, CaseIterable {
    case push, pull, totp, hotp, sms, mail, recovery
    /// A temporary code of the help desk.
    case `operator`
}

extension Factor {
    /// The factors whose answer is a code that the user enters.
    public static let codes: [Factor] = enrolled + [.operator]

    /// The code factors that a user adds through the website.
    public static let enrolled: [Factor] = [.totp, .hotp, .sms, .mail, .recovery]

    /// The factors that a website can choose. Pull is not among them, since it stands in for push.
    public static let choices: [Factor] = [.push] + codes

    /// The factors that are permitted if a website does not choose. A temporary code of the help
    /// desk is not among them.
    public static let usual: [Factor] = [.push] + enrolled

    public var isCode: Bool { Factor.codes.contains(self) }

    /// Whether the relay sends the codes of this factor.
    public var isSent: Bool { self == .sms || self == .mail }

    /// Whether a challenge can begin the factor by itself. Recovery codes and temporary codes are
    /// accepted at any time, so they never begin.
    public var beginsByItself: Bool { self != .recovery && self != .operator }
}

/// The state of a code factor.
public enum FactorState: String, Sendable, CaseIterable {
    /// The factor is not yet confirmed by a first code.
    case waiting
    case active
}

/// The hash function of one-time codes; the raw values are stored.
public enum OTPAlgorithm: String, Sendable, CaseIterable {
    case sha1, sha256, sha512
}

/// The level of confidence in a successful login, with the terms of NIST SP 800-63B-4 where it has
/// some.
public enum Assurance: String, Sendable, CaseIterable, Ranked {
    case low, restricted, substantial, high

    /// Returns the assurance of an answer by that factor. A push is raised to high by a required
    /// number, or by user verification on the phone.
    public init(factor: Factor, numberAsked: Bool, uv: UserVerification = .none) {
        switch factor {
        case .push, .pull: self = numberAsked || uv > .none ? .high : .substantial
        case .totp, .hotp, .recovery: self = .substantial
        case .sms: self = .restricted
        case .mail, .operator: self = .low
        }
    }

    public var rank: Int {
        switch self {
        case .low: 0
        case .restricted: 1
        case .substantial: 2
        case .high: 3
        }
    }
}

/// The method by which a phone verified its user before it signed.
public enum UserVerification: String, Sendable, CaseIterable, Ranked {
    case none, passcode, biometric

    public var rank: Int {
        switch self {
        case .none: 0
        case .passcode: 1
        case .biometric: 2
        }
    }
}

/// The state of a user: only an active one gets challenges.
public enum UserState: String, Sendable, CaseIterable {
    case active
    /// Locked after too many wrong numbers, or by an operator. Wrong codes lock only codes: see
    /// `CodeLockout`.
    case locked
    /// Blocked after the user reported a login as fraud.
    case frozen
    /// Blocked because the user left the directory. The state before it returns with the user.
    case disabled
    /// Active, but the user's expiry has passed. This state is never stored: it follows from the
    /// clock.
    case expired
}

/// The party that approved a further phone before its activation was created.
public enum Approval: String, Sendable, CaseIterable {
    case user, website, `operator`
    /// A recovery of all lost phones, which the new phone replaces.
    case recovery
}

/// The author of a change of a user or a phone.
public enum ChangeAuthor: String, Sendable, CaseIterable {
    case phone, website, `operator`
    /// A person with the revocation code or a recovery code.
    case code
    /// A sync of users from a directory.
    case directory
}

/// A change of a user or phone that websites and users are notified of.
public enum AccountEvent: String, Sendable, CaseIterable {
    case deviceBound = "device.bound"
    case deviceUnbound = "device.unbound"
    /// A phone got the secret of its codes.
    case secretDelivered = "secret.delivered"
    /// A key of a phone got a certificate to sign documents.
    case deviceCertified = "device.certified"
    case userFrozen = "user.frozen"
    case userLocked = "user.locked"
    case codesLocked = "codes.locked"
    /// The PIN of a phone is locked after too many wrong ones.
    case pinLocked = "pin.locked"
    /// The PIN of a phone was set, changed or reset.
    case pinChanged = "pin.changed"
    /// The PUK of a phone is locked after too many wrong ones.
    case pukLocked = "puk.locked"
    /// The help desk has got a code that sets a new PIN on a phone.
    case unlockIssued = "unlock.issued"
    /// The help desk has given out a temporary code.
    case temporaryIssued = "temporary.issued"
    /// A temporary code was used.
    case temporaryUsed = "temporary.used"
    /// A lost factor can be replaced soon, unless somebody cancels that.
    case recoveryWaiting = "recovery.waiting"
    case recoveryDone = "recovery.done"
    case recoveryCancelled = "recovery.cancelled"
}

/// The state of a step of a challenge.
///
/// - `queued`: the service that delivers it does not have it yet.
/// - `sent`: the service has accepted it; for codes that the relay does not send, the step has begun.
/// - `seen`: the phone shows the challenge.
/// - `refused`: it can never be delivered, for example because the number does not exist.
/// - `undeliverable`: no service could deliver it, or the user's factor was removed.
/// - `expired`: its time has ended, or another step began in its place.
/// - `answered`: this step brought the answer.
/// - `skipped`: the challenge ended without it.
public enum StepState: String, Sendable, CaseIterable {
    case queued, sent, refused, undeliverable, seen, expired, answered, skipped
}

/// The state of a bound phone. A waiting phone is not yet approved, a suspended one can be resumed,
/// and a revoked one has ended for good.
public enum DeviceState: String, Sendable, CaseIterable {
    case waiting, active, suspended, revoked
}

/// The states that a website can set for a bound phone and reverse.
public enum DeviceSwitch: String, Sendable, CaseIterable {
    case active, suspended

    public var state: DeviceState { self == .active ? .active : .suspended }
}

/// The platform that a phone reports; it helps to choose the push service.
public enum Platform: String, Sendable, CaseIterable {
    case ios, android, web, other
}

/// The environment of Apple's push service to which a device token belongs.
public enum PushEnvironment: String, Sendable, CaseIterable {
    case production, sandbox
}
