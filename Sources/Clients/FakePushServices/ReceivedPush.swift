import JSON

/// A push that passed all checks.
public struct ReceivedPush: Sendable, Equatable {
    public let deviceToken: String
    public let id: String
    public let topic: String
    public let pushType: String
    public let collapseID: String?
    /// The expiration in seconds since 1970; 0 for a single attempt.
    public let expiration: Int64?
    public let priority: Int
    /// The provider token; nil if the provider used a certificate.
    public let providerToken: String?
    public let payload: JSONObject
    public let payloadBytes: Int

    /// The `alert` of the notification.
    public var alert: JSONObject { payload["aps"]?.object?["alert"]?.object ?? [:] }
    public var category: String? { payload["aps"]?.object?["category"]?.string }
    /// The challenge, in the only key that is not Apple's.
    public var challenge: String? { payload["challenge"]?.string }
    /// The arguments of the alert's localized text.
    public var arguments: [String] { alert["loc-args"]?.array?.compactMap(\.string) ?? [] }
}

/// A request with its outcome.
public struct RecordedRequest: Sendable, Equatable {
    public enum Outcome: Sendable, Equatable {
        case accepted
        case refused(RefusalReason)
        /// No answer, or one that Apple would not send. The push may have been accepted
        /// nevertheless.
        case other
    }

    /// The push; nil if the request failed the checks.
    public let push: ReceivedPush?
    public let path: String
    public let outcome: Outcome
    /// A short text for the answer: `200`, `410 Unregistered`, `GOAWAY`.
    public let answer: String
    /// The number of the connection, from 1, counted since the service was created.
    public let connection: Int
    public let stream: Int32
}

/// The opening or the end of a connection. A failed handshake causes no event.
public struct ConnectionEvent: Sendable, Equatable {
    /// The number of the connection, from 1, counted since the service was created.
    public let number: Int
    public let isOpen: Bool
    public let remote: String
}
