import HTTP2
import World

/// A notification for one device.
public struct APNsNotification: Sendable, Equatable {
    /// The environment of a device token. Apple separates the tokens of apps from Xcode
    /// (`sandbox`).
    public enum Environment: String, Sendable, CaseIterable {
        case production, sandbox
    }

    /// The `apns-id`: a UUID in lower case. It is the same for every attempt, so that Apple can
    /// recognize a repetition.
    public let id: String
    public let deviceToken: String
    public let environment: Environment
    /// The payload: JSON of at most 4096 bytes.
    public let payload: [UInt8]
    /// The `apns-collapse-id`: the notification replaces an earlier one with the same id. Apple
    /// reads it.
    public let collapseID: String?
    /// The time from which the notification is of no use to the phone.
    public let expiresAt: Timestamp
    /// The time from which sending it is of no use, if earlier than `expiresAt`.
    public let deliverBy: Timestamp?
    /// On whose behalf it is sent. Apple does not see it. Notifications that wait for a stream are
    /// taken from each owner in turn.
    public let owner: String

    public init(
        id: String, deviceToken: String, environment: Environment = .production, payload: [UInt8],
        collapseID: String? = nil, expiresAt: Timestamp, deliverBy: Timestamp? = nil, owner: String = ""
    ) {
        self.owner = owner
        self.id = id
        self.deviceToken = deviceToken
        self.environment = environment
        self.payload = payload
        self.collapseID = collapseID
        self.expiresAt = expiresAt
        self.deliverBy = deliverBy
    }
}

extension APNsNotification: PushMessage {
    private static let payloadLimit = 4096
    private static let collapseLimit = 64

    /// The reason why Apple would refuse the notification, found before it is sent; nil if it is
    /// valid.
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

    /// The last time at which it may be sent.
    var end: Timestamp { deliverBy.map { min($0, expiresAt) } ?? expiresAt }

    var tokenEnvironment: Environment? { environment }
    /// The pauses that Apple asks for do not grow.
    var attempts: Int { 0 }

    func request(at now: Timestamp) -> FormedRequest { APNsRequest.own(self) }
}
