import Attestation
import JSON

/// The policies by their names in settings, on the command line and in the database, with the
/// permitted values.
extension Policy {
    public static let lifetimes = 60...600
    public static let numbers = [0, 2, 6]
    public static let guessLimits = 1...100
    public static let pushLimits = 1...100
    public static let loginLimits = 1...1000
    public static let deviceSlots = 1...50
    public static let pushDeadlines = 5...300
    public static let codeDeadlines = 10...600
    public static let phonePlaceDistances = 50...20_000
    public static let recoveryWaits = 1...336
    public static let uvAges = 1...86_400
    /// The time window of `push-limit` and `login-limit`.
    public static let limitWindow = Duration.seconds(300)

    public struct Fault: Error, Equatable {
        public let message: String
    }

    public static let keys = [
        "account-links", "addresses", "answers", "attestation-android", "attestation-ios", "certificate-tags",
        "code-deadline", "code-retries", "devices",
        "enrolment", "factors", "further-factors", "guesses", "lifetime", "limit-held", "limit-logins-day",
        "limit-logins-minute", "limit-mails-day", "limit-mails-month", "limit-outage-messages", "limit-pushes-day",
        "limit-texts-day",
        "limit-texts-month", "limit-users", "login-limit", "max-uv-age",
        "min-app-android", "min-app-ios", "min-assurance", "min-os-android", "min-os-ios", "min-patch-level", "min-uv",
        "number",
        "number-below", "phone-codes", "phone-place", "phone-place-distance", "pin", "push-deadline", "push-detail",
        "push-limit",
        "recovery-check", "recovery-url", "recovery-wait", "screen-lock", "verified-boot", "when-push-is-down",
    ]

    /// The policies that a group of users may have of its own. They apply when a challenge is
    /// opened. The others belong to the website as a whole, or apply without a challenge.
    public static let groupKeys = [
        "code-deadline", "code-retries", "factors", "lifetime", "max-uv-age", "min-app-android", "min-app-ios",
        "min-assurance",
        "min-os-android", "min-os-ios", "min-patch-level", "min-uv", "number", "number-below", "phone-place",
        "phone-place-distance", "pin", "push-deadline", "push-detail", "push-limit", "screen-lock", "verified-boot",
        "when-push-is-down",
    ]

    /// Sets a policy from its text. The message of a fault says which values are valid.
    public mutating func set(_ key: String, to text: String) throws(Fault) {
        switch key {
        case "account-links": accountLinks = try Self.word(key, text)
        case "addresses": addresses = try Self.word(key, text)
        case "answers": answers = try Self.word(key, text)
        case "attestation-android": attestation.android = try Self.word(key, text)
        case "attestation-ios": attestation.ios = try Self.word(key, text)
        case "certificate-tags": certificateTags = try Self.tags(key, text)
        case "code-deadline": codeDeadline = try Self.seconds(key, text, Self.codeDeadlines)
        case "code-retries": codeRetries = try Self.word(key, text)
        case "devices": devices = try Self.number(key, text, Self.deviceSlots)
        case "enrolment": enrolment = try Self.word(key, text)
        case "factors": factors = try Self.factors(key, text)
        case "further-factors": furtherFactors = try Self.word(key, text)
        case "guesses": guesses = try Self.number(key, text, Self.guessLimits)
        case "lifetime": lifetime = try Self.number(key, text, Self.lifetimes)
        case "login-limit": loginLimit = try Self.number(key, text, Self.loginLimits)
        case "max-uv-age": maxUVAge = try Self.seconds(key, text, Self.uvAges)
        case "min-app-android": posture.android.appVersion = try Self.version(key, text)
        case "min-app-ios": posture.ios.appVersion = try Self.version(key, text)
        case "min-assurance": minAssurance = try Self.word(key, text)
        case "min-os-android": posture.android.osVersion = try Self.version(key, text)
        case "min-os-ios": posture.ios.osVersion = try Self.version(key, text)
        case "min-patch-level": posture.patchLevel = try Self.month(key, text)
        case "min-uv": minUV = try Self.word(key, text)
        case "number":
            guard let digits = Int(text), Self.numbers.contains(digits) else {
                throw Fault(message: "number must be 0, 2 or 6")
            }
            number = digits
        case "number-below":
            guard text != "none" else { return numberBelow = nil }
            guard let amount = Amount(text) else {
                throw Fault(
                    message: "number-below must be none or an amount with its currency, such as 30 EUR or 49.90 CHF")
            }
            numberBelow = amount
        case "phone-codes": phoneCodes = try Self.word(key, text)
        case "phone-place": phonePlace = try Self.word(key, text)
        case "phone-place-distance": phonePlaceDistance = try Self.number(key, text, Self.phonePlaceDistances)
        case "pin": pin = try Self.word(key, text)
        case "push-deadline": pushDeadline = try Self.number(key, text, Self.pushDeadlines)
        case "push-detail": pushDetail = try Self.word(key, text)
        case "recovery-check": recoveryCheck = try Self.word(key, text)
        case "recovery-url": recoveryURL = try Self.page(key, text)
        case "recovery-wait": recoveryWait = try Self.number(key, text, Self.recoveryWaits)
        case "push-limit": pushLimit = try Self.number(key, text, Self.pushLimits)
        case "screen-lock": posture.screenLock = try Self.toggle(key, text)
        case "verified-boot": posture.verifiedBoot = try Self.toggle(key, text)
        case "when-push-is-down": whenPushIsDown = try Self.word(key, text)
        default:
            try setLimit(key, to: text)
        }
    }

    public func text(of key: String) -> String? { Self.texts[key]?(self) ?? limitText(of: key) }

    /// The text of each policy but the limits. A table, because each login writes all of them, and a
    /// switch over strings compares one after the other.
    private static let texts: [String: @Sendable (Policy) -> String] = [
        "account-links": { $0.accountLinks.rawValue },
        "addresses": { $0.addresses.rawValue },
        "answers": { $0.answers.rawValue },
        "attestation-android": { $0.attestation.android.rawValue },
        "attestation-ios": { $0.attestation.ios.rawValue },
        "certificate-tags": { orNone($0.certificateTags.map(\.text)) },
        "code-deadline": { orNone($0.codeDeadline) },
        "code-retries": { $0.codeRetries.rawValue },
        "devices": { String($0.devices) },
        "enrolment": { $0.enrolment.rawValue },
        "factors": { $0.factors.map(\.rawValue).joined(separator: ", ") },
        "further-factors": { $0.furtherFactors.rawValue },
        "guesses": { String($0.guesses) },
        "lifetime": { String($0.lifetime) },
        "login-limit": { String($0.loginLimit) },
        "max-uv-age": { orNone($0.maxUVAge) },
        "min-app-android": { $0.posture.android.appVersion?.description ?? "none" },
        "min-app-ios": { $0.posture.ios.appVersion?.description ?? "none" },
        "min-assurance": { $0.minAssurance.rawValue },
        "min-os-android": { $0.posture.android.osVersion?.description ?? "none" },
        "min-os-ios": { $0.posture.ios.osVersion?.description ?? "none" },
        "min-patch-level": { orNone($0.posture.patchLevel) },
        "min-uv": { $0.minUV.rawValue },
        "number": { String($0.number) },
        "number-below": { $0.numberBelow?.text ?? "none" },
        "phone-codes": { $0.phoneCodes.rawValue },
        "phone-place": { $0.phonePlace.rawValue },
        "phone-place-distance": { String($0.phonePlaceDistance) },
        "pin": { $0.pin.rawValue },
        "push-deadline": { String($0.pushDeadline) },
        "push-detail": { $0.pushDetail.rawValue },
        "push-limit": { String($0.pushLimit) },
        "recovery-check": { $0.recoveryCheck.rawValue },
        "recovery-url": { $0.recoveryURL ?? "none" },
        "recovery-wait": { String($0.recoveryWait) },
        "screen-lock": { $0.posture.screenLock ? "on" : "off" },
        "verified-boot": { $0.posture.verifiedBoot ? "on" : "off" },
        "when-push-is-down": { $0.whenPushIsDown.rawValue },
    ]

    private static func orNone(_ number: (some BinaryInteger)?) -> String { number.map { String($0) } ?? "none" }

    private static func orNone(_ words: [String]) -> String { words.isEmpty ? "none" : words.joined(separator: ", ") }

    static func word<Word: RawRepresentable & CaseIterable>(
        _ key: String, _ text: String
    ) throws(Fault) -> Word where Word.RawValue == String {
        guard let word = Word(rawValue: text) else {
            let words = Word.allCases.map(\.rawValue).joined(separator: ", ")
            throw Fault(message: "\(key) must be one of \(words)")
        }
        return word
    }

    /// Parses a list of factors in the order of trial. Each may occur once; spaces around commas
    /// are permitted.
    private static func factors(_ key: String, _ text: String) throws(Fault) -> [Factor] {
        var factors: [Factor] = []
        for word in text.split(separator: ",", omittingEmptySubsequences: false) {
            let word = word.drop { $0 == " " }
            let name = String(word.prefix { $0 != " " })
            guard let factor = Factor(rawValue: name), factor != .pull,
                word.dropFirst(name.count).allSatisfy({ $0 == " " })
            else {
                let words = Factor.choices.map(\.rawValue).joined(separator: ", ")
                throw Fault(message: "\(key) must be a list of \(words), in the order in which to try them")
            }
            guard !factors.contains(factor) else { throw Fault(message: "\(key) must name \(name) only once") }
            factors.append(factor)
        }
        return factors
    }

    private static func seconds(
        _ key: String, _ text: String, _ range: ClosedRange<Int>
    ) throws(Fault) -> Int? {
        guard text != "none" else { return nil }
        guard let number = Int(text), range.contains(number) else {
            throw Fault(
                message: "\(key) must be none or a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    /// Parses the address of a page, to which the relay adds a fragment. Browsers send a fragment
    /// to no server.
    private static func page(_ key: String, _ text: String) throws(Fault) -> String? {
        guard text != "none" else { return nil }
        let isLocal = ["http://localhost", "http://127.0.0.1"].contains { start in
            text.hasPrefix(start) && [":", "/", nil].contains(text.dropFirst(start.count).first)
        }
        guard isLocal || text.hasPrefix("https://"), text.utf8.count <= 512, text.utf8.count > 8,
            text.utf8.allSatisfy({ (0x21...0x7e).contains($0) && !Array("#\"<>\\".utf8).contains($0) })
        else {
            throw Fault(
                message: "\(key) must be none or an https: address without a fragment, of at most 512 characters")
        }
        return text
    }

    private static func number(_ key: String, _ text: String, _ range: ClosedRange<Int>) throws(Fault) -> Int {
        guard let number = Int(text), range.contains(number) else {
            throw Fault(message: "\(key) must be a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }
}

/// The stored form of policies: a JSON object of texts. A website's row contains only the
/// differences from the installation's defaults; a challenge's row contains all policies but the
/// limits of the website.
extension Policy {
    public var json: String { json(of: Self.keysOfChallenges) }

    private static let keysOfChallenges = keys.filter { !limitKeys.contains($0) }

    /// - Parameter keys: keys that differ from each other.
    public func json(of keys: [String]) -> String {
        let members = keys.map { JSONObject.Member(name: $0, value: .string(text(of: $0) ?? "")) }
        return JSONWriter.text(.object(JSONObject(distinct: members)))
    }

    /// Returns these policies with the changes of a website's row. A key from a newer relay is
    /// ignored.
    ///
    /// A stored `number-below` that names no amount, such as one without a currency from an earlier
    /// version, does not make all calls of the website fail. It bounds nothing, so a number is
    /// always asked for, which is the stricter reading. Other unreadable values have no such reading.
    ///
    /// - Parameter note: is called with the fault of a value that is read as none.
    public func changed(by json: String, noting note: (Fault) -> Void = { _ in }) throws(Fault) -> Policy {
        guard let value = try? JSONReader.read(Array(json.utf8)), let object = value.object else {
            throw Fault(message: "the policies in the database are not a JSON object")
        }
        var policy = self
        for key in Self.keys {
            guard let text = object[key]?.string else { continue }
            do throws(Fault) {
                try policy.set(key, to: text)
            } catch {
                guard key == "number-below" else { throw error }
                policy.numberBelow = nil
                note(error)
            }
        }
        return policy
    }
}
