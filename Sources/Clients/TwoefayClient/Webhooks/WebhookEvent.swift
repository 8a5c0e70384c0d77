import JSON
import Webhooks
import World

/// Something that happened, as the relay tells it of its own accord.
public struct WebhookEvent: Sendable, Equatable {
    /// By type. Each names the user by the token that `/register` answered.
    public enum EventType: Sendable, Equatable {
        /// What `RelayClient.wait` would have brought: `LoginEvidence(outcome)` and `ReceiptCheck` come next.
        case loginDecided(token: String, LoginOutcome)
        case deviceBound(token: String, Device)
        case deviceUnbound(token: String, Device)
        case userLocked(token: String)
        /// No code of the user is taken any more; their phone can still approve.
        case codesLocked(token: String)
        case userFrozen(token: String)
        /// Of a type that this version does not know, which is no fault: answer 2xx, and do nothing.
        case other
    }

    /// The same however often it is sent.
    public let id: String
    public let type: String
    public let at: Timestamp
    public let what: EventType
    /// As it came; it holds more than `what` says.
    public let data: JSONObject

    /// - Parameter body: whose signature was checked.
    init(id: String, body: [UInt8]) throws(WebhookFault) {
        let object: JSONObject?
        do throws(JSONError) {
            object = try JSONReader.read(body).object
        } catch {
            throw .body(error.message)
        }
        guard let object, let type = object["type"]?.string, let data = object["data"]?.object,
            let at = object["timestamp"]?.string.flatMap({ Timestamp(rfc3339: $0) })
        else { throw .body("type, timestamp or data is missing") }
        self.id = id
        self.type = type
        self.at = at
        self.data = data
        do throws(CallFault) {
            what = try Self.what(type, data)
        } catch {
            throw .body("\(type): \(error.description)")
        }
    }

    private static func what(_ type: String, _ data: JSONObject) throws(CallFault) -> EventType {
        switch type {
        case "login.decided":
            let outcome = try LoginOutcome(data)
            guard outcome.isDecided else { throw .odd("it is not decided") }
            return .loginDecided(token: try data.text("token"), outcome)
        case "device.bound": return .deviceBound(token: try data.text("token"), try Device(data))
        case "device.unbound": return .deviceUnbound(token: try data.text("token"), try Device(data))
        case "codes.locked": return .codesLocked(token: try data.text("token"))
        case "user.locked": return .userLocked(token: try data.text("token"))
        case "user.frozen": return .userFrozen(token: try data.text("token"))
        default: return .other
        }
    }
}
