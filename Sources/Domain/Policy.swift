import JSON

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
    /// Wrong codes or numbers in a row before the user is locked.
    public var guesses = 10
    /// Phones that a user may have.
    public var devices = 5
    public var furtherFactors: FurtherFactors = .proved

    public init() {}

    public static let lifetimes = 60...600
    public static let numbers = [0, 2, 6]
    public static let guessLimits = 1...100
    public static let pushLimits = 1...100
    public static let loginLimits = 1...1000
    public static let deviceSlots = 1...50
    /// What `push-limit` and `login-limit` count in.
    public static let limitWindow = Duration.seconds(300)

    public struct Fault: Error, Equatable {
        public let message: String
    }

    /// Every policy under the name it has in settings, on the command line and in the database.
    public static let keys = [
        "answers", "devices", "further-factors", "guesses", "lifetime", "login-limit", "min-uv", "number",
        "number-below", "push-detail", "push-limit",
    ]

    /// Sets one policy from its text; the message of a fault says what would have been right.
    public mutating func set(_ key: String, to text: String) throws(Fault) {
        switch key {
        case "answers": answers = try Self.word(key, text)
        case "devices": devices = try Self.number(key, text, Self.deviceSlots)
        case "further-factors": furtherFactors = try Self.word(key, text)
        case "guesses": guesses = try Self.number(key, text, Self.guessLimits)
        case "lifetime": lifetime = try Self.number(key, text, Self.lifetimes)
        case "login-limit": loginLimit = try Self.number(key, text, Self.loginLimits)
        case "min-uv": minUV = try Self.word(key, text)
        case "number":
            guard let digits = Int(text), Self.numbers.contains(digits) else {
                throw Fault(message: "number must be 0, 2 or 6")
            }
            number = digits
        case "number-below":
            guard text != "none" else { return numberBelow = nil }
            guard let amount = Amount(text) else {
                throw Fault(message: "number-below must be none or an amount such as 30 or 49.90")
            }
            numberBelow = amount
        case "push-detail": pushDetail = try Self.word(key, text)
        case "push-limit": pushLimit = try Self.number(key, text, Self.pushLimits)
        default:
            throw Fault(message: "\(key) is no policy; there are \(Self.keys.joined(separator: ", "))")
        }
    }

    public func text(of key: String) -> String? {
        switch key {
        case "answers": answers.rawValue
        case "devices": String(devices)
        case "further-factors": furtherFactors.rawValue
        case "guesses": String(guesses)
        case "lifetime": String(lifetime)
        case "login-limit": String(loginLimit)
        case "min-uv": minUV.rawValue
        case "number": String(number)
        case "number-below": numberBelow?.text ?? "none"
        case "push-detail": pushDetail.rawValue
        case "push-limit": String(pushLimit)
        default: nil
        }
    }

    private static func word<Word: RawRepresentable & CaseIterable>(
        _ key: String, _ text: String
    ) throws(Fault) -> Word where Word.RawValue == String {
        guard let word = Word(rawValue: text) else {
            let words = Word.allCases.map(\.rawValue).joined(separator: ", ")
            throw Fault(message: "\(key) must be one of \(words)")
        }
        return word
    }

    private static func number(_ key: String, _ text: String, _ range: ClosedRange<Int>) throws(Fault) -> Int {
        guard let number = Int(text), range.contains(number) else {
            throw Fault(message: "\(key) must be a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }
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

/// The policies as the database keeps them: a JSON object of texts. A website's row holds only what differs from the
/// installation's defaults; a challenge's row holds all of them.
extension Policy {
    public var json: String {
        var object = JSONObject()
        for key in Self.keys { object.set(key, .string(text(of: key) ?? "")) }
        return String(decoding: JSONWriter.write(.object(object)), as: UTF8.self)
    }

    /// These policies, changed by what a website's row says. A key that a newer relay wrote is passed over.
    public func changed(by json: String) throws(Fault) -> Policy {
        guard let value = try? JSONReader.read(Array(json.utf8)), let object = value.object else {
            throw Fault(message: "the policies in the database are not a JSON object")
        }
        var policy = self
        for key in Self.keys {
            guard let text = object[key]?.string else { continue }
            try policy.set(key, to: text)
        }
        return policy
    }
}
