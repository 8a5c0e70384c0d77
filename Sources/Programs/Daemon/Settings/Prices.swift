import Domain

/// An amount of money in the settings, such as `0.0004`, in the currency in which the gateways are
/// paid.
public struct Price: SettingsValue {
    public let millionths: Int64

    public init(millionths: Int64) { self.millionths = millionths }

    public init(settingsText text: String) throws(SettingsFault) {
        guard let millionths = Money.millionths(text) else {
            throw SettingsFault("must be an amount, such as 0.075: at most six digits before and after the point")
        }
        self.millionths = millionths
    }

    public var settingsText: String { Settings.amount(millionths) }
}

/// The price that a website pays for one of each, for `twoefay website usage`. Text messages have the prices
/// of their gateways.
public struct Prices: Sendable, Equatable {
    public var login: Price?
    public var push: Price?
    public var mail: Price?
    /// For each user, in each month.
    public var user: Price?
}

extension SettingsKeys {
    static let prices: [SettingsKey] = [
        .optional(
            "prices.login", \.prices.login, example: "0.001",
            "What `twoefay website usage` charges a website for a login, in the currency of the SMS gateways."),
        .optional("prices.push", \.prices.push, example: "0.0001", "The same for a push to one phone."),
        .optional(
            "prices.mail", \.prices.mail, example: "0.0004",
            "The same for a mail. Text messages cost what their gateway costs (sms.gateways)."),
        .optional("prices.user", \.prices.user, example: "0.05", "The same for each user in each month."),
    ]
}
