import HTTP
import HTTP2
import World

/// A push as Apple wants to be asked.
enum APNsRequest {
    /// Different in every request: they would only push the lasting fields out of the table.
    static let neverIndexed: Set<String> = ["apns-id", "apns-expiration", "apns-collapse-id"]
    /// Twice the longest that Apple has used; it asks not to count on a length.
    private static let tokenDigits = 2...512

    /// The device token has to be one: it becomes part of the path.
    static func make(
        _ push: APNsNotification, topic: String, authority: String, authorization: String?
    ) -> ClientRequest {
        precondition(isToken(push.deviceToken), "not a device token")
        var fields = Fields()
        fields.add("apns-topic", topic)
        fields.add("apns-push-type", "alert")
        fields.add("apns-priority", "10")
        if let authorization { fields.add("authorization", authorization) }
        fields.add("apns-id", push.id)
        fields.add("apns-expiration", String(push.expiresAt.seconds))
        if let collapseID = push.collapseID { fields.add("apns-collapse-id", collapseID) }
        return ClientRequest(
            method: "POST", path: "/3/device/\(push.deviceToken)", authority: authority, fields: fields,
            neverIndexed: neverIndexed, body: push.payload)
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
}
