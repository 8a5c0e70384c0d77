import JSON
import World

/// A website's request that one of its users approves a login or an action.
///
/// The phone shows the person the user, the address, the browser, the service, the action and the
/// details. Only `username` is required.
///
///     var login = LoginRequest(username: "ada", ip: visitor, action: "Transfer 40 €")
///     login.details = [.init(label: "To", value: "DE02 1203 0000 0000 2020 51")]
///     let open = try await relay.ask(login)
public struct LoginRequest: Sendable, Equatable {
    /// The user, by the name that the website gave to `RelayClient.register`.
    public var username: String
    /// The visitor's IP address.
    public var ip: String?
    /// The `User-Agent` of the visitor's browser.
    public var userAgent: String?
    /// The part of the website that the visitor wants to use.
    public var service: String?
    /// The action that the person is asked to approve.
    public var action: String?
    /// Further labelled lines, such as an amount and a recipient.
    public var details: [LoginRecord.Detail]
    /// The number that the website chose and will show; nil if the relay chooses one.
    public var number: String?
    /// The visitor's `Accept-Language`, which selects the language of mails and text messages with
    /// codes.
    public var languages: String?
    /// The language that the visitor chose on the website, as a tag such as `de`. It has precedence
    /// over `languages`, and over the language that the website registered for the user.
    public var chosenLanguage: String?
    /// The factors that this login may use; nil for the factors of the website's policy.
    public var factors: [Factor]?
    /// The lowest assurance that this login accepts. If the website's policy requires a higher one,
    /// that applies; nil leaves it to the policy.
    public var leastAssurance: Assurance?
    /// Whether the browser is known for this user from an earlier successful login (see
    /// `KnownBrowsers`). Logins from other browsers then cannot end this login or use up its
    /// limits.
    public var isKnown: Bool
    /// The lifetime of the challenge, 60 to 600 seconds; nil for the lifetime in the website's
    /// policy.
    public var life: Duration?

    /// Creates a request. Properties that are nil are not sent.
    public init(
        username: String, ip: String? = nil, userAgent: String? = nil, service: String? = nil, action: String? = nil,
        details: [LoginRecord.Detail] = [], number: String? = nil, languages: String? = nil,
        chosenLanguage: String? = nil, factors: [Factor]? = nil,
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
        self.chosenLanguage = chosenLanguage
        self.factors = factors
        self.leastAssurance = leastAssurance
        self.isKnown = isKnown
        self.life = life
    }

    /// Returns the body of `POST /login`.
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

/// A login that the relay has accepted: the answer to `RelayClient.ask`.
///
/// It is usually not decided yet. If the user is locked, the challenge has already failed.
public struct OpenLogin: Sendable, Equatable {
    /// The record of the request. Keep it in the website's session or database until the login
    /// ends: `ReceiptCheck` compares the receipt with it.
    public let asked: LoginRecord
    /// Whether the user has a bound phone. If not, the login uses codes.
    public let hasPhone: Bool
    /// The factor that the user must answer with; nil if the challenge has already failed.
    public let factor: Factor?
    /// The time at which the challenge expires, by the relay's clock.
    public let expiresAt: Timestamp
    /// Whether the user's codes are locked after too many wrong ones. The relay then accepts no
    /// code, and only a phone can answer. See `RelayClient.unlock`.
    public let areCodesLocked: Bool
    /// The unfinished steps of the user's enrolment, which the website can resume now.
    public let missing: [EnrolmentStep]

    /// The number to show to the person, who enters it on the phone; nil if there is none, or if no
    /// phone can answer.
    public let number: String?

    /// The id of the challenge.
    public var challenge: String { asked.challenge }
}
