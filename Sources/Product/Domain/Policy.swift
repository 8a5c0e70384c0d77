import Attestation

/// The form in which a website's users answer.
public enum Answers: String, Sendable, CaseIterable {
    /// The phone signs what the person saw and decided.
    case signed
    /// The phone answers with its client certificate.
    case certificate
    /// The website answers for its users, as in the original protocol.
    case website
}

/// The amount of detail that a push may show on a locked screen.
public enum PushDetail: String, Sendable, CaseIterable {
    case full, minimal
}

/// The approval that binds a further factor of a user who already has one.
public enum FurtherFactors: String, Sendable, CaseIterable {
    /// The user's approval by the strongest existing factor.
    case proved
    /// The website's request alone.
    case website
}

/// The addresses of a user to which codes are sent.
public enum Addresses: String, Sendable, CaseIterable {
    /// Confirmed addresses, and those that the website gave when it registered the user, for which
    /// it vouches.
    case vouched
    /// Only addresses that the user has confirmed by a code.
    case confirmed
}

/// The messages in which users get a link to their account.
public enum AccountLinks: String, Sendable, CaseIterable {
    /// None.
    case none
    /// Mails with login codes, and those about account events.
    case mail
}

/// The effect of a wrong code on its challenge. Each wrong code is counted, too.
public enum CodeRetries: String, Sendable, CaseIterable {
    /// The challenge stays open, and the user may try again.
    case keep
    /// The challenge ends.
    case cancel
    /// A code that the relay did not send, such as one of an app, gives way to one that it sends.
    /// After a wrong code of a mail or text message, or if no code can be sent, the challenge ends.
    case resend
}

/// The ceremony by which a user's first phone is bound: who gets the activation code, and how.
public enum Ceremony: String, Sendable, CaseIterable {
    /// The website gets the code and shows it to its user.
    case open
    /// The relay mails the code to the user; the website never sees it.
    case letter
    /// As `letter`, but an operator must first confirm that the person's identity was checked.
    case confirmed
}

/// Whether phones get the secret of codes that they show themselves.
public enum PhoneCodePolicy: String, Sendable, CaseIterable {
    case off
    /// A phone gets its secret once, when it has none yet.
    case once
    /// A phone gets its secret again whenever it asks for it, for example after the app was
    /// installed anew with the same keys.
    case again
}

/// The beginning of a login while the push service is known to be down.
public enum PushOutageRule: String, Sendable, CaseIterable {
    /// The next factor begins at once, beside the push.
    case next
    /// The next factor waits for `push-deadline`, as always.
    case wait
}

/// Whether something happens.
public enum Toggle: String, Sendable, CaseIterable {
    case on, off
}

/// The rules of a website for its logins, copied into each challenge when it is opened.
public struct Policy: Equatable, Sendable {
    public var accountLinks: AccountLinks = .none
    public var answers: Answers = .signed
    /// The lifetime of a challenge in seconds.
    public var lifetime = 300
    /// The number of digits that the user transfers from one screen to the other; 0 requires none.
    public var number = 2
    /// The amount below which no number is required; it is compared with the detail with the label
    /// `amount`, if that is in the same currency.
    public var numberBelow: Amount?
    /// The minimum user verification by the phone.
    public var minUV: UserVerification = .none
    /// The seconds for which a user verification by the phone counts; nil for any time.
    public var maxUVAge: Int?
    public var pushDetail: PushDetail = .full
    /// The maximum number of pushes to one user in five minutes; further challenges are quiet.
    public var pushLimit = 5
    /// The maximum number of challenges of one user in five minutes.
    public var loginLimit = 20
    /// The number of consecutive wrong codes of a user that locks codes, and of wrong numbers of a
    /// phone that locks its user.
    public var guesses = 10
    /// The maximum number of phones of a user.
    public var devices = 5
    public var furtherFactors: FurtherFactors = .proved
    /// The permitted factors, in the order in which they are tried. Pull counts as push.
    public var factors: [Factor] = Factor.usual
    /// The seconds after which a push that was not seen gives way to the next factor.
    public var pushDeadline = 30
    /// The seconds after which the next factor follows a code factor by itself; nil if only the
    /// website starts it.
    public var codeDeadline: Int? = 90
    public var codeRetries: CodeRetries = .keep
    /// The minimum assurance of a success.
    public var minAssurance: Assurance = .low
    public var addresses: Addresses = .vouched
    /// The weight of attestations, for each platform.
    public var attestation = AttestationRequirements.all(.none)
    /// The demands on the state of a phone that approves.
    public var posture = Posture()
    /// The use of PINs by the phones that approve.
    public var pin: PINUse = .none
    public var enrolment: Ceremony = .open
    /// The purposes for which phones get further certificates.
    public var certificateTags: [CertificateTag] = []
    /// Whether phones get the secret of codes that they show themselves.
    public var phoneCodes: PhoneCodePolicy = .off
    /// The use of the place that phones report.
    public var phonePlace: PhonePlaceUse = .ignore
    /// The distance in kilometres from which the phone counts as far from the login.
    public var phonePlaceDistance = 500
    /// Whether new recovery codes count only after one of them was typed back.
    public var recoveryCheck: Toggle = .off
    /// The page of the website that a mailed link for a lost factor opens; nil: users cannot
    /// recover a factor by themselves.
    public var recoveryURL: String?
    /// The hours between the second proof of a recovery and the change.
    public var recoveryWait = 24
    public var whenPushIsDown: PushOutageRule = .next
    /// The most that the website may use.
    public var limits = WebsiteLimits()

    public init() {}
}

extension Policy {
    /// The weakest user verification that an approval can have. A verification of any age is at
    /// least a passcode.
    public var leastVerification: UserVerification { maxUVAge == nil ? minUV : max(minUV, .passcode) }

    /// Returns the number of digits that the user must transfer for a challenge with these details.
    /// An amount removes the number only if it is the only one and unambiguous.
    public func numberDigits(for details: [Context.Detail]) -> Int {
        // If the website answers itself, there is no phone on which to enter a number.
        guard answers != .website else { return 0 }
        let amounts = details.filter { $0.label.utf8.elementsEqual("amount".utf8) }
        guard let bound = numberBelow, amounts.count == 1, let amount = Amount(amounts[0].value),
            amount.isBelow(bound)
        else { return number }
        return 0
    }
}
