/// A step of a user's enrolment that a website can resume. The raw values are on the wire.
public enum EnrolmentStep: String, Sendable, CaseIterable {
    /// An operator must confirm that the person's identity was checked.
    case identity
    /// No phone, app or token of the user was ever bound.
    case factor
    /// The mail address waits for its code.
    case email
    /// The phone number waits for its code.
    case phone
    /// A recovery code must be typed back before the new ones count.
    case recovery
}

/// The state of a user's enrolment.
public struct EnrolmentState: Sendable, Equatable {
    public let isIdentityConfirmed: Bool
    /// Whether a factor of the user was ever bound.
    public let isProved: Bool
    /// The active code factors, and those that wait for a first code.
    private let active: [Factor]
    private let waiting: [Factor]

    public init(isIdentityConfirmed: Bool, isProved: Bool, active: [Factor], waiting: [Factor]) {
        self.isIdentityConfirmed = isIdentityConfirmed
        self.isProved = isProved
        self.active = active
        self.waiting = waiting
    }

    /// Returns the unfinished steps in the order in which they are possible; empty if the enrolment
    /// is complete.
    public func missing(under policy: Policy) -> [EnrolmentStep] {
        EnrolmentStep.allCases.filter { step in
            switch step {
            case .identity: policy.enrolment == .confirmed && !isIdentityConfirmed
            case .factor: !isProved
            case .email: isWaiting(.mail)
            case .phone: isWaiting(.sms)
            // Until then the new codes are void, whether there are older ones or not.
            case .recovery: waiting.contains(.recovery)
            }
        }
    }

    /// Whether a first factor of this kind waits. One that is to replace an active factor is no
    /// part of the enrolment.
    private func isWaiting(_ kind: Factor) -> Bool { waiting.contains(kind) && !active.contains(kind) }
}
