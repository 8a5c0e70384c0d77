/// The resources of a website that are limited. Each limit is a policy of its own.
public enum WebsiteLimit: String, Sendable, CaseIterable {
    /// Requests of the website and of its users' phones that a relay holds at the same time.
    case held
    case loginsDay = "logins_day"
    case loginsMinute = "logins_minute"
    case mailsDay = "mails_day"
    case mailsMonth = "mails_month"
    /// Mails and text messages in an hour that begin because a push service is down.
    case outageMessages = "outage_messages"
    case pushesDay = "pushes_day"
    /// Segments of text messages: each of them is paid for.
    case textsDay = "texts_day"
    case textsMonth = "texts_month"
    case users

    /// The limit with that policy; nil if the policy is another one.
    public init?(policy key: String) {
        guard let limit = Self.allCases.first(where: { $0.policy == key }) else { return nil }
        self = limit
    }

    /// The name of its policy, such as `limit-texts-day`.
    public var policy: String { "limit-" + rawValue.split(separator: "_").joined(separator: "-") }

    /// Whether it limits what is used in a month.
    var isOfMonth: Bool { self == .mailsMonth || self == .textsMonth }

    /// The word for a limit that the website's policies do not set. The number of held requests and
    /// of users is then that of the setting `quotas`.
    var absent: String { self == .held || self == .users ? "quota" : "none" }

    var range: ClosedRange<Int> {
        switch self {
        case .held, .users, .loginsDay, .loginsMinute: 1...1_000_000_000
        case .mailsDay, .mailsMonth, .outageMessages, .pushesDay, .textsDay, .textsMonth: 0...1_000_000_000
        }
    }
}

/// The most that one website may use. The defaults are far above the needs of most websites, and
/// finite where one website could use up what all of them share.
public struct WebsiteLimits: Sendable, Equatable {
    private static let defaults: [WebsiteLimit: Int] = [
        .loginsMinute: 60_000, .loginsDay: 5_000_000, .pushesDay: 5_000_000, .mailsDay: 100_000, .textsDay: 10_000,
        .textsMonth: 100_000, .outageMessages: 1000,
    ]

    private var bounds = Self.defaults

    public init() {}

    /// The most that the website may use; nil means no limit, or that of the setting `quotas`.
    public subscript(_ limit: WebsiteLimit) -> Int? {
        get { bounds[limit] }
        set { bounds[limit] = newValue }
    }
}

extension Policy {
    /// The policies that limit what a website uses. They belong to the website as a whole, so a
    /// challenge keeps no copy of them: a change applies at once.
    static let limitKeys = Set(WebsiteLimit.allCases.map(\.policy))

    mutating func setLimit(_ key: String, to text: String) throws(Fault) {
        guard let limit = WebsiteLimit(policy: key) else {
            throw Fault(message: "\(key) is not a policy; the policies are \(Self.keys.joined(separator: ", "))")
        }
        guard text != limit.absent else { return limits[limit] = nil }
        guard let number = Int(text), limit.range.contains(number) else {
            throw Fault(
                message: "\(key) must be \(limit.absent) or a whole number from \(limit.range.lowerBound) to "
                    + "\(limit.range.upperBound)")
        }
        limits[limit] = number
    }

    func limitText(of key: String) -> String? {
        WebsiteLimit(policy: key).map { limit in limits[limit].map { String($0) } ?? limit.absent }
    }
}
