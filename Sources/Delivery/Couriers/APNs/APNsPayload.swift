import Domain
import JSON
import Relay

/// `PushText` as Apple takes them.
enum APNsPayload {
    /// Apple's.
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
