/// What a website remembers of one login that it asked for, until it lets somebody in or not: what it sent to /login,
/// and what it showed. It belongs into the website's own session or database; nothing in it comes from the relay but
/// `challenge`, and `number` where the website leaves the choice to the relay.
public struct LoginRecord: Sendable, Equatable {
    public struct Detail: Sendable, Equatable {
        public var label: String
        public var value: String

        public init(label: String, value: String) {
            self.label = label
            self.value = value
        }
    }

    /// As /login answered.
    public var challenge: String
    public var username: String
    /// The website's own nonce, chosen anew for each login and never guessable.
    public var request: String
    /// The number that the website showed; nil when it showed none.
    public var number: String?
    public var service: String?
    public var action: String?
    public var details: [Detail]
    public var ip: String?
    public var userAgent: String?
    /// When it asked, by its own clock: seconds since 1970.
    public var askedAt: Int64

    public init(
        challenge: String, username: String, request: String, number: String?, service: String? = nil,
        action: String? = nil, details: [Detail] = [], ip: String? = nil, userAgent: String? = nil, askedAt: Int64
    ) {
        self.challenge = challenge
        self.username = username
        self.request = request
        self.number = number
        self.service = service
        self.action = action
        self.details = details
        self.ip = ip
        self.userAgent = userAgent
        self.askedAt = askedAt
    }
}
