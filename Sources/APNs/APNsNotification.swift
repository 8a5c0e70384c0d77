import World

/// One notification for one device.
public struct APNsNotification: Sendable, Equatable {
    /// Apple keeps the tokens of apps from Xcode apart.
    public enum Environment: String, Sendable, CaseIterable {
        case production, sandbox
    }

    /// Its `apns-id`: a UUID in lower case, the same at every attempt, so that Apple can tell a repetition.
    public let id: String
    public let deviceToken: String
    public let environment: Environment
    /// JSON, at most 4096 bytes.
    public let payload: [UInt8]
    /// It takes the place of one that is under the same text. Apple reads it.
    public let collapseID: String?
    public let expiresAt: Timestamp

    public init(
        id: String, deviceToken: String, environment: Environment = .production, payload: [UInt8],
        collapseID: String? = nil, expiresAt: Timestamp
    ) {
        self.id = id
        self.deviceToken = deviceToken
        self.environment = environment
        self.payload = payload
        self.collapseID = collapseID
        self.expiresAt = expiresAt
    }
}
