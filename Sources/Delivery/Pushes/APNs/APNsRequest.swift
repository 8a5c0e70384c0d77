import HTTP
import HTTP2
import World

/// Apple's form of requests and answers.
enum APNsRequest {
    /// Accepted lengths of a device token. The maximum is twice the longest that Apple has used;
    /// Apple asks clients not to rely on a length.
    private static let tokenDigits = 2...512

    /// Returns the fields that all requests share.
    static func form(topic: String, authority: String, authorization: String?) -> RequestForm {
        var fields = Fields()
        fields.add("apns-topic", topic)
        fields.add("apns-push-type", "alert")
        fields.add("apns-priority", "10")
        if let authorization { fields.add("authorization", authorization) }
        return RequestForm(method: "POST", authority: authority, fields: fields)
    }

    /// Returns the fields of this push. The caller has checked that `fault` is nil; this matters
    /// because the device token becomes part of the path.
    static func own(_ push: APNsNotification) -> FormedRequest {
        var request = FormedRequest(path: "/3/device/" + push.deviceToken, body: push.payload)
        request.add("apns-id", push.id)
        request.add("apns-expiration", String(push.expiresAt.seconds))
        if let collapseID = push.collapseID { request.add("apns-collapse-id", collapseID) }
        return request
    }

    /// Returns whether the text has the form of a device token.
    static func isToken(_ text: String) -> Bool {
        var text = text
        return text.withUTF8 { bytes in
            tokenDigits.contains(bytes.count) && bytes.allSatisfy { isDigit($0) || (0x41...0x46).contains($0) }
        }
    }

    /// Returns whether the text is a UUID in the canonical form of RFC 9562, in lower case.
    static func isID(_ text: String) -> Bool {
        var text = text
        return text.withUTF8 { bytes in
            guard bytes.count == 36 else { return false }
            for index in 0..<36 {
                let isHyphen = index == 8 || index == 13 || index == 18 || index == 23
                guard isHyphen ? bytes[index] == 0x2d : isDigit(bytes[index]) else { return false }
            }
            return true
        }
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte)
    }
}
