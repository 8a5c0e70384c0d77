import Domain
import GSM
import World

/// A text message that a gateway accepted, for the daily usage report.
public struct SMSUsage: Sendable, Equatable {
    public let message: OutboxEntryID
    public let at: Timestamp
    public let prefix: NumberPrefix
    /// The website that pays for it; nil for none.
    public let website: WebsiteID?
    public let parts: Int
    /// The cost in millionths of the currency in which the gateways are paid.
    public let cost: Int64

    public init(
        _ message: OutboxEntryID, at: Timestamp, prefix: NumberPrefix, website: WebsiteID? = nil, parts: Int,
        cost: Int64
    ) {
        self.website = website
        self.message = message
        self.at = at
        self.prefix = prefix
        self.parts = parts
        self.cost = cost
    }
}

/// The store of the SMS usage report. The report is for people: the limits are counted when a
/// message is begun.
public protocol SMSUsageStore: Sendable {
    func addUsage(_ sent: SMSUsage) async throws(StoreFailure)
}
