import JSON

/// The website's own record of one login. Keep its `text` in the visitor's session until the login
/// ends: the receipt is compared with it.
public struct Login: Sendable, Equatable {
    /// The values that went to the relay and that the phone shows.
    public let asked: LoginRecord
    /// The factors that the website asked for; nil if it asked for none.
    public let factors: [Factor]?
    /// The assurance that the website asked for; nil if it asked for none.
    public let leastAssurance: Assurance?
    /// The factor that the user must answer with, as the relay says. It is for a page.
    public let factor: Factor?
    /// Whether the user has a phone, as the relay says. It is for a page.
    public let hasPhone: Bool
    /// Whether the relay accepts no code of this user at present. It is for a page.
    public let areCodesLocked: Bool
    /// The unfinished steps of the user's enrolment, as the relay says. It is for a page.
    public let missing: [EnrolmentStep]

    /// The id of the challenge.
    public var challenge: String { asked.challenge }
    /// The number that the visitor enters on the phone; nil if no phone can answer.
    public var number: String? { asked.number }
    /// The user whom the website asked.
    public var username: String { asked.username }

    init(
        asked: LoginRecord, factors: [Factor]?, leastAssurance: Assurance?, factor: Factor?, hasPhone: Bool,
        areCodesLocked: Bool, missing: [EnrolmentStep]
    ) {
        self.asked = asked
        self.factors = factors
        self.leastAssurance = leastAssurance
        self.factor = factor
        self.hasPhone = hasPhone
        self.areCodesLocked = areCodesLocked
        self.missing = missing
    }
}

extension Login {
    private static let own = ["challenge", "number", "asked_at"]

    /// The record as JSON, for a session. The clients of other languages read it, too.
    public var text: String {
        var flat = asked.json
        var json = JSONObject()
        for name in Self.own {
            // A client of another language wants all of them.
            json[name] = flat[name] ?? .null
            flat.set(name, nil)
        }
        json["sent"] = .object(flat)
        json.set("factors", factors.map { .array($0.map { .string($0.rawValue) }) })
        json.set("min_assurance", leastAssurance.map { .string($0.rawValue) })
        json.set("factor", factor.map { .string($0.rawValue) })
        json["has_phone"] = .bool(hasPhone)
        json["codes_locked"] = .bool(areCodesLocked)
        json["missing"] = .array(missing.map { .string($0.rawValue) })
        return String(decoding: JSONWriter.write(json), as: UTF8.self)
    }

    /// Restores a record from its `text`; nil if it is none. Take it from the website's own session
    /// only, never from a browser.
    public init?(text: String) {
        guard let json = (try? JSONReader.read(Array(text.utf8)))?.object, var flat = json["sent"]?.object else {
            return nil
        }
        for name in Self.own where json[name] != .null { flat.set(name, json[name]) }
        guard let asked = LoginRecord(flat) else { return nil }
        let factors: [String]? = json["factors"]?.array?.compactMap(\.string)
        guard factors?.count == json["factors"]?.array?.count else { return nil }
        self.init(
            asked: asked, factors: factors?.map { Factor(rawValue: $0) },
            leastAssurance: json.word(ifAny: "min_assurance"), factor: json.word(ifAny: "factor"),
            hasPhone: json["has_phone"]?.bool ?? false, areCodesLocked: json["codes_locked"]?.bool ?? false,
            missing: json["missing"]?.array?.compactMap(\.string).map { EnrolmentStep(rawValue: $0) } ?? [])
    }
}

/// The state of a login after all checks. Let the user in only if `isApproved`.
public struct Decision: Sendable, Equatable {
    /// The state of a login.
    public enum State: String, Sendable {
        /// Approved and proved. It is returned once for each login.
        case approved
        /// Ended without success.
        case denied
        /// Not decided yet.
        case open
    }

    /// The state of the login.
    public let state: State
    /// The reason of a denial.
    public let reason: Reason?
    /// The factor that decided the login.
    public let factor: Factor?
    /// The method by which the answer was authenticated.
    public let proof: Proof?
    /// The level of confidence in an approval, as the relay says; that of a page is limited by
    /// `Requirements.loginOrigins`.
    public let assurance: Assurance?
    /// The phone that approved; nil after a code.
    public let device: String?
    /// The method by which the phone verified its user, from the checked receipt.
    public let userVerification: UserVerification?
    /// The relay's answer. Beyond the members above, it is unchecked.
    public let answer: JSONObject

    /// Whether the user may be let in: into a new session.
    public var isApproved: Bool { state == .approved }
    /// Whether the login is over.
    public var isEnded: Bool { state != .open }

    init(_ state: State, _ answer: JSONObject) {
        self.init(state, answer, userVerification: nil, assurance: answer.word(ifAny: "assurance"))
    }

    init(_ state: State, _ answer: JSONObject, userVerification: UserVerification?, assurance: Assurance?) {
        self.state = state
        self.answer = answer
        self.userVerification = userVerification
        reason = state == .denied ? answer.word(ifAny: "reason") : nil
        factor = answer.word(ifAny: "factor")
        proof = answer.word(ifAny: "proof")
        self.assurance = assurance
        device = state == .approved ? answer["device"]?.string : nil
    }
}
