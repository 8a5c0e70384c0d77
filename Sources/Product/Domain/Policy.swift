/// How answers of a website's users are given.
public enum Answers: String, Sendable, CaseIterable {
    /// The phone signs what the person saw and decided.
    case signed
    /// The phone answers with its client certificate.
    case certificate
    /// The website answers for its own users, as in the original.
    case website
}

/// How much of a request the push itself may show on a locked screen.
public enum PushDetail: String, Sendable, CaseIterable {
    case full, minimal
}

/// What binds a further factor of a user who has one.
public enum FurtherFactors: String, Sendable, CaseIterable {
    /// The user's approval, by the strongest factor there is.
    case proved
    /// The website's word.
    case website
}

/// Which addresses of a user codes are sent to.
public enum Addresses: String, Sendable, CaseIterable {
    /// Also those that the website gave when it registered the user: it vouches for them.
    case vouched
    /// Those alone that the user has confirmed by a code.
    case confirmed
}

/// What a website decided for its logins. Frozen into each challenge when it is asked.
public struct Policy: Equatable, Sendable {
    public var answers: Answers = .signed
    /// Seconds a challenge lives.
    public var lifetime = 300
    /// Digits of the number that the person carries from one screen to the other; 0 asks for none.
    public var number = 2
    /// Below this amount (details with the label `amount`) no number is asked.
    public var numberBelow: Amount?
    /// How the phone must have made sure of its owner.
    public var minUV: UserVerification = .none
    public var pushDetail: PushDetail = .full
    /// Pushes to one user in five minutes; beyond them a challenge is quiet.
    public var pushLimit = 5
    /// Challenges of one user in five minutes.
    public var loginLimit = 20
    /// Wrong codes of a user in a row before codes are locked, and wrong numbers of a phone before its user is.
    public var guesses = 10
    /// Phones that a user may have.
    public var devices = 5
    public var furtherFactors: FurtherFactors = .proved
    /// What a user may answer by, in the order in which it is tried. A phone that asks by itself (pull) answers where a
    /// push would.
    public var factors: [Factor] = [.push] + Factor.codes
    /// Seconds after which a push that nobody looked at is not waited for any longer.
    public var pushDeadline = 30
    /// Seconds after which the factor that follows a code's begins by itself; nil where the website begins it.
    public var codeDeadline: Int? = 90
    /// The least that a success has to be worth.
    public var minAssurance: Assurance = .low
    public var addresses: Addresses = .vouched

    public init() {}
}

extension Policy {
    /// How many digits the person has to carry for a challenge with these details. An amount lets the number go only
    /// where there is exactly one and no doubt about it.
    public func numberDigits(for details: [Context.Detail]) -> Int {
        // Where the website itself answers there is no phone to type a number into.
        guard answers != .website else { return 0 }
        let amounts = details.filter { $0.label.utf8.elementsEqual("amount".utf8) }
        guard let bound = numberBelow, amounts.count == 1, let amount = Amount(detail: amounts[0].value),
            amount < bound
        else { return number }
        return 0
    }
}
