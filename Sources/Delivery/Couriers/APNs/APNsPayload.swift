import Domain
import JSON
import Relay

/// The text of a push in Apple's payload format.
enum APNsPayload {
    /// Apple's limit in bytes.
    static let limit = 4096

    static func bytes(for push: Push) -> [UInt8] {
        PushText.bytes(for: push, limit: limit) { alert in
            let aps: JSONObject = [
                "alert": .object(alert), "sound": "default", "category": .string(PushText.category),
                "interruption-level": "time-sensitive", "mutable-content": 1,
            ]
            let whole: JSONObject = ["aps": .object(aps), "challenge": .string(push.challenge.text)]
            return JSONWriter.write(whole)
        }
    }
}
