import Domain
import GSM
import World

/// What a gateway took, for the day's account.
public struct SMSUsage: Sendable, Equatable {
    public let message: OutboxEntryID
    public let at: Timestamp
    public let prefix: NumberPrefix
    public let parts: Int
    /// In millionths of whatever the gateways are paid in.
    public let cost: Int64

    public init(_ message: OutboxEntryID, at: Timestamp, prefix: NumberPrefix, parts: Int, cost: Int64) {
        self.message = message
        self.at = at
        self.prefix = prefix
        self.parts = parts
        self.cost = cost
    }
}

/// Keeps the account of text messages. It is for people: what is limited is counted where a message is begun.
public protocol SMSUsageStore: Sendable {
    func addUsage(_ sent: SMSUsage) async throws(StoreFailure)
}
