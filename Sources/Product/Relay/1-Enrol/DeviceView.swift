import Domain
import World

/// A phone as the website of its user sees it.
public struct DeviceView: Sendable, Equatable {
    public let id: DeviceID
    public let name: String?
    public let platform: Platform
    public let state: DeviceState
    /// The device token; empty if the phone polls by itself, or if the push service no longer knows
    /// the token.
    public let pushToken: String
    public let publicKey: [UInt8]?
    public let binding: String?
    public let createdAt: Timestamp
    public let lastSeenAt: Timestamp?
    /// The last report of the phone about itself; nil if it has sent none.
    public let report: DeviceReport?

    public init(
        id: DeviceID, name: String?, platform: Platform, state: DeviceState, pushToken: String, publicKey: [UInt8]?,
        binding: String?, createdAt: Timestamp, lastSeenAt: Timestamp?, report: DeviceReport?
    ) {
        self.report = report
        self.id = id
        self.name = name
        self.platform = platform
        self.state = state
        self.pushToken = pushToken
        self.publicKey = publicKey
        self.binding = binding
        self.createdAt = createdAt
        self.lastSeenAt = lastSeenAt
    }
}
