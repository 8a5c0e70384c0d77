import Domain
import HTTP
import HTTP2
import Relay
import World

/// A push as Apple wants to be asked.
enum APNsRequest {
    /// Different in every request: they would only push the lasting fields out of the table.
    static let neverIndexed: Set<String> = ["apns-id", "apns-expiration", "apns-collapse-id"]
    /// Twice the longest that Apple has used; it asks not to count on a length.
    private static let tokenDigits = 2...512

    /// The device token has to be one: it becomes part of the path.
    static func make(
        _ push: Push, topic: String, authority: String, authorization: String?
    ) -> ClientRequest {
        precondition(isToken(push.deviceToken), "not a device token")
        var fields = Fields()
        fields.add("apns-topic", topic)
        fields.add("apns-push-type", "alert")
        fields.add("apns-priority", "10")
        if let authorization { fields.add("authorization", authorization) }
        fields.add("apns-id", uuid(push.id))
        fields.add("apns-expiration", String(push.expiresAt.seconds))
        // A repetition takes the place of what it repeats. The challenge names nobody; Apple reads this.
        fields.add("apns-collapse-id", push.challenge.text)
        return ClientRequest(
            method: "POST", path: "/3/device/\(push.deviceToken)", authority: authority, fields: fields,
            neverIndexed: neverIndexed, body: APNsPayload.bytes(for: push))
    }

    /// A phone that did not say what it is may be Apple's, if its token looks so. Of one that says that it is, a token
    /// that cannot be right is a mistake to be told about.
    static func isFor(_ platform: Platform, pushToken: String) -> Bool {
        switch platform {
        case .ios: true
        case .other: isToken(pushToken)
        case .android, .web: false
        }
    }

    /// Whether the text may be one of Apple's tokens.
    static func isToken(_ text: String) -> Bool {
        tokenDigits.contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x46, 0x61...0x66: true
                default: false
                }
            }
    }

    /// The canonical text of RFC 9562, in lower case.
    static func uuid(_ id: ErrandID) -> String {
        var rest = Substring(id.text)
        let groups = [8, 4, 4, 4, 12].map { count in
            defer { rest = rest.dropFirst(count) }
            return rest.prefix(count)
        }
        return groups.joined(separator: "-")
    }
}
