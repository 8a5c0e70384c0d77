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
    /// From then on it is of no use to the phone.
    public let expiresAt: Timestamp
    /// From then on it is of no use to send it, if that is earlier.
    public let deliverBy: Timestamp?

    public init(
        id: String, deviceToken: String, environment: Environment = .production, payload: [UInt8],
        collapseID: String? = nil, expiresAt: Timestamp, deliverBy: Timestamp? = nil
    ) {
        self.id = id
        self.deviceToken = deviceToken
        self.environment = environment
        self.payload = payload
        self.collapseID = collapseID
        self.expiresAt = expiresAt
        self.deliverBy = deliverBy
    }
}

extension APNsNotification {
    private static let payloadLimit = 4096
    private static let collapseLimit = 64

    /// What Apple would say against it, found before it is sent.
    var fault: String? {
        if !APNsRequest.isToken(deviceToken) { return "the device token is not hexadecimal" }
        if payload.isEmpty { return "the payload is empty" }
        if payload.count > Self.payloadLimit { return "the payload has more than \(Self.payloadLimit) bytes" }
        if let collapseID, !(1...Self.collapseLimit).contains(collapseID.utf8.count) {
            return "the collapse id is empty, or longer than \(Self.collapseLimit) bytes"
        }
        if !APNsRequest.isID(id) { return "the id is not a UUID in lower case" }
        return nil
    }

    /// The last moment to send it.
    var end: Timestamp { deliverBy.map { min($0, expiresAt) } ?? expiresAt }
}
