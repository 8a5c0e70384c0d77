import HTTP2
import JSON
import World

/// A data message for one Android phone. The app makes the notification from it.
public struct FCMMessage: Sendable, Equatable {
    /// The id of the push in the log, the same for every attempt. The service does not see it.
    public let id: String
    /// The registration token of the app on the phone.
    public let token: String
    /// The members of the message. FCM allows only texts as values.
    public let data: JSONObject
    /// The time from which the message is of no use to the phone.
    public let expiresAt: Timestamp
    /// The time from which sending it is of no use, if earlier than `expiresAt`.
    public let deliverBy: Timestamp?
    /// On whose behalf it is sent. The service does not see it.
    public let owner: String
    /// The number of earlier attempts, with which the pause after a fault of the service grows.
    public let attempts: Int

    public init(
        id: String, token: String, data: JSONObject, expiresAt: Timestamp, deliverBy: Timestamp? = nil,
        owner: String = "", attempts: Int = 0
    ) {
        self.id = id
        self.token = token
        self.data = data
        self.expiresAt = expiresAt
        self.deliverBy = deliverBy
        self.owner = owner
        self.attempts = attempts
    }
}

extension FCMMessage {
    /// FCM's limit for the keys and values of `data`, in bytes.
    public static let dataLimit = 4096
    /// Accepted lengths of a registration token. Google names no form; today's tokens have 142 to
    /// about 200 characters.
    private static let tokenLengths = 32...1024

    /// Returns whether the text looks like a registration token: letters, digits, `_` and `-`, with
    /// a colon after the id of the installation. No device token of another service has a colon.
    static func isToken(_ text: String) -> Bool {
        var text = text
        return text.withUTF8 { bytes in
            tokenLengths.contains(bytes.count) && bytes.contains(UInt8(ascii: ":"))
                && bytes.allSatisfy { byte in
                    (0x30...0x3a).contains(byte) || (0x61...0x7a).contains(byte | 0x20)
                        || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "-")
                }
        }
    }

    /// Returns the bytes of `data` as FCM counts them.
    public static func bytes(of data: JSONObject) -> Int {
        data.members.reduce(0) { $0 + $1.name.utf8.count + ($1.value.string?.utf8.count ?? 0) }
    }
}

/// A message together with the path of its project.
struct FCMRequest: PushMessage {
    let message: FCMMessage
    let path: String

    var id: String { message.id }
    var owner: String { message.owner }
    var tokenEnvironment: APNsNotification.Environment? { nil }
    var attempts: Int { message.attempts }

    var fault: String? {
        if !FCMMessage.isToken(message.token) { return "the device token is not a registration token of FCM" }
        if message.data.members.contains(where: { $0.value.string == nil }) { return "a value of data is not a text" }
        if FCMMessage.bytes(of: message.data) > FCMMessage.dataLimit {
            return "data has more than \(FCMMessage.dataLimit) bytes"
        }
        return nil
    }

    var end: Timestamp { message.deliverBy.map { min($0, message.expiresAt) } ?? message.expiresAt }

    func request(at now: Timestamp) -> FormedRequest {
        // A whole number of seconds: a fraction would be kept longer than the challenge lives.
        let seconds = max((message.expiresAt - now).components.seconds, 0)
        // It has no `collapse_key`: Google limits messages with one to a few in an hour.
        let android: JSONObject = ["priority": "HIGH", "ttl": .string("\(seconds)s")]
        let whole: JSONObject = [
            "message": .object([
                "token": .string(message.token), "data": .object(message.data), "android": .object(android),
            ])
        ]
        return FormedRequest(path: path, body: JSONWriter.write(whole))
    }
}
