import HTTP
import HTTP2
import World

/// A push as Apple wants to be asked.
enum APNsRequest {
    /// Twice the longest that Apple has used; it asks not to count on a length.
    private static let tokenDigits = 2...512

    /// What all of them have in common.
    static func form(topic: String, authority: String, authorization: String?) -> RequestForm {
        var fields = Fields()
        fields.add("apns-topic", topic)
        fields.add("apns-push-type", "alert")
        fields.add("apns-priority", "10")
        if let authorization { fields.add("authorization", authorization) }
        return RequestForm(method: "POST", authority: authority, fields: fields)
    }

    /// What is this push's own. The device token has to be one: it becomes part of the path.
    static func own(_ push: APNsNotification) -> FormedRequest {
        precondition(isToken(push.deviceToken), "not a device token")
        var request = FormedRequest(path: "/3/device/" + push.deviceToken, body: push.payload)
        request.add("apns-id", push.id)
        request.add("apns-expiration", String(push.expiresAt.seconds))
        if let collapseID = push.collapseID { request.add("apns-collapse-id", collapseID) }
        return request
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

    /// A UUID in the canonical text of RFC 9562, in lower case.
    static func isID(_ text: String) -> Bool {
        text.utf8.count == 36
            && text.utf8.enumerated().allSatisfy { index, byte in
                switch (index, byte) {
                case (8, _), (13, _), (18, _), (23, _): byte == 0x2d
                case (_, 0x30...0x39), (_, 0x61...0x66): true
                default: false
                }
            }
    }
}
