/// Words of the wire that several verbs share.

/// How an answer reached the relay, and so what the website has to trust for it.
public enum Proof: String, Sendable, CaseIterable {
    case signed, certificate, website, code
}

public enum Factor: String, Sendable, CaseIterable {
    case push, pull, totp, hotp, sms, mail, recovery
}

/// How much a success is worth (NIST SP 800-63B-4's words where it has some).
public enum Assurance: String, Sendable, CaseIterable {
    case high, substantial, restricted, low

    /// What an answer by that factor is worth; a number that was asked raises a push.
    public init(factor: Factor, numberAsked: Bool) {
        switch factor {
        case .push, .pull: self = numberAsked ? .high : .substantial
        case .totp, .hotp, .recovery: self = .substantial
        case .sms: self = .restricted
        case .mail: self = .low
        }
    }
}

public enum StepState: String, Sendable, CaseIterable {
    case queued, sent, refused, undeliverable, seen, expired, answered, skipped
}

public enum DeviceState: String, Sendable, CaseIterable {
    case waiting, active, suspended, revoked
}

public enum Platform: String, Sendable, CaseIterable {
    case ios, android, web, other
}

public enum PushEnvironment: String, Sendable, CaseIterable {
    case production, sandbox
}
