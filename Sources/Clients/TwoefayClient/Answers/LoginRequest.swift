import JSON
import World

/// What a website asks one of its users: everything given here is what the person is shown.
public struct LoginRequest: Sendable, Equatable {
    public var username: String
    /// Where the visitor comes from.
    public var ip: String?
    public var userAgent: String?
    public var service: String?
    public var action: String?
    public var details: [LoginRecord.Detail]
    /// The number that the website chose to show; nil leaves that to the relay.
    public var number: String?
    /// The visitor's `Accept-Language`, for codes that are sent.
    public var languages: String?
    /// Only these; nil: those of the website's policy.
    public var factors: [Factor]?
    public var leastAssurance: Assurance?
    /// The browser is known as this user's, from a login that succeeded there: see `KnownBrowsers`. Logins from other
    /// browsers can then neither end this one nor use up its limits.
    public var isKnown: Bool
    /// 60 to 600 seconds; nil: as the website's policy says.
    public var life: Duration?

    public init(
        username: String, ip: String? = nil, userAgent: String? = nil, service: String? = nil, action: String? = nil,
        details: [LoginRecord.Detail] = [], number: String? = nil, languages: String? = nil, factors: [Factor]? = nil,
        leastAssurance: Assurance? = nil, isKnown: Bool = false, life: Duration? = nil
    ) {
        self.username = username
        self.ip = ip
        self.userAgent = userAgent
        self.service = service
        self.action = action
        self.details = details
        self.number = number
        self.languages = languages
        self.factors = factors
        self.leastAssurance = leastAssurance
        self.isKnown = isKnown
        self.life = life
    }

    func body(request: String) -> JSONObject {
        var body: JSONObject = ["username": .string(username), "request": .string(request)]
        for (name, value) in [
            ("ip", ip), ("user_agent", userAgent), ("service", service), ("action", action), ("number", number),
        ] {
            body.set(name, value.map { .string($0) })
        }
        if !details.isEmpty {
            body["details"] = .array(details.map { ["label": .string($0.label), "value": .string($0.value)] })
        }
        body.set("factors", factors.map { .array($0.map { .string($0.rawValue) }) })
        body.set("min_assurance", leastAssurance.map { .string($0.rawValue) })
        if isKnown { body.set("known", true) }
        body.set("expires_in", life.map { .integer($0.components.seconds) })
        return body
    }
}

/// A user was asked. Not decided yet, or decided already: a user who is locked gets a challenge that has failed.
public struct OpenLogin: Sendable, Equatable {
    /// To be kept until the login ends, in the website's session or database: the receipt is checked against it.
    public let asked: LoginRecord
    /// The user has a bound phone; without one, codes are used.
    public let hasPhone: Bool
    /// What the user is to answer with; nil where it has failed already.
    public let factor: Factor?
    public let expiresAt: Timestamp
    /// Too many codes were wrong: no code is taken, and a phone alone can answer. See `RelayClient.unlock`.
    public let areCodesLocked: Bool

    public var challenge: String { asked.challenge }
    /// To be shown to the person, who types it into the phone.
    public var number: String? { asked.number }
}
