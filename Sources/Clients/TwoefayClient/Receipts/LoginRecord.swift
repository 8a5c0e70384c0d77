/// The website's own record of one login request: the values that it sent to `/login` and showed.
///
/// Keep it in the website's session or database until the login ends. `ReceiptCheck` compares the
/// receipt with it. Only `challenge` comes from the relay, and `number` if the relay chose the
/// number.
public struct LoginRecord: Sendable, Equatable {
    /// A labelled line of the request, such as an amount or a recipient.
    public struct Detail: Sendable, Equatable {
        /// The label of the line, as the phone shows it.
        public var label: String
        /// The value of the line.
        public var value: String

        /// Creates a line.
        public init(label: String, value: String) {
            self.label = label
            self.value = value
        }
    }

    /// The id of the challenge, from the answer of `/login`.
    public var challenge: String
    /// The user whom the request names.
    public var username: String
    /// The website's nonce: new for each login, and impossible to guess.
    public var request: String
    /// The number that the website showed; nil if it showed none.
    public var number: String?
    /// The service in the request; nil if it named none.
    public var service: String?
    /// The action in the request; nil if it named none.
    public var action: String?
    /// The labelled lines in the request.
    public var details: [Detail]
    /// The visitor's address in the request; nil if it named none.
    public var ip: String?
    /// The browser in the request; nil if it named none.
    public var userAgent: String?
    /// The time of the request by the website's clock, in seconds since 1970.
    public var askedAt: Int64

    /// Creates a record.
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
