import JSON

/// A push as it came, after everything about it was found right.
public struct ReceivedPush: Sendable, Equatable {
    public let deviceToken: String
    public let id: String
    public let topic: String
    public let pushType: String
    public let collapseID: String?
    /// Seconds since 1970; 0 asks for a single try.
    public let expiration: Int64?
    public let priority: Int
    /// The provider token; nil where a certificate was shown.
    public let providerToken: String?
    public let payload: JSONObject
    public let payloadBytes: Int

    /// What the notification is made of.
    public var alert: JSONObject { payload["aps"]?.object?["alert"]?.object ?? [:] }
    public var category: String? { payload["aps"]?.object?["category"]?.string }
    /// The one key that is not Apple's.
    public var challenge: String? { payload["challenge"]?.string }
    /// The arguments of the alert's sentence.
    public var arguments: [String] { alert["loc-args"]?.array?.compactMap(\.string) ?? [] }
}

/// A request together with what was made of it.
public struct RecordedRequest: Sendable, Equatable {
    public enum Outcome: Sendable, Equatable {
        case accepted
        case refused(AppleReason)
        /// Never answered, or with something that Apple would not say; it may have been accepted all the same.
        case other
    }

    /// Nil where the request was refused for what it was.
    public let push: ReceivedPush?
    public let path: String
    public let outcome: Outcome
    /// What it gets, in a few words: `200`, `410 Unregistered`, `GOAWAY`.
    public let answer: String
    /// Which of all connections since the service was made, from 1, and which of its streams.
    public let connection: Int
    public let stream: Int32
}

/// A connection has come, or gone. One whose handshake fails has done neither.
public struct ConnectionEvent: Sendable, Equatable {
    /// Among all since the service was made, from 1.
    public let number: Int
    public let isOpen: Bool
    public let remote: String
}
