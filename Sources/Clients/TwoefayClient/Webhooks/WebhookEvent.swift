import JSON
import Webhooks
import World

/// An event that the relay reported to the website in a webhook.
public struct WebhookEvent: Sendable, Equatable {
    /// The content of an event, by its type. `token` is the user's token from the answer of
    /// `/register`.
    public enum EventType: Sendable, Equatable {
        /// A challenge has ended. The outcome is the same that `RelayClient.wait` returns. Check it
        /// next with `LoginEvidence(outcome)` and `ReceiptCheck`.
        case loginDecided(token: String, LoginOutcome)
        /// A phone was bound to the user.
        case deviceBound(token: String, Device)
        /// A phone was removed from the user.
        case deviceUnbound(token: String, Device)
        /// A phone of the user got the secret of its codes.
        case secretDelivered(token: String, Device)
        /// A key of a phone of the user got a certificate to sign documents.
        case deviceCertified(token: String, Device)
        /// The user was locked.
        case userLocked(token: String)
        /// The user's codes are locked. The user's phone can still approve.
        case codesLocked(token: String)
        /// The PIN of a phone is locked. The phone cannot approve until its PIN is reset.
        case pinLocked(token: String)
        /// The PIN of a phone was set, changed or reset.
        case pinChanged(token: String)
        /// The PUK of a phone is locked. It cannot reset the PIN any more.
        case pukLocked(token: String)
        /// The help desk has given out a code that sets a new PIN on a phone.
        case unlockIssued(token: String)
        /// The help desk has given out a temporary code, with which somebody can log in as the user.
        case temporaryIssued(token: String)
        /// A temporary code was used.
        case temporaryUsed(token: String)
        /// The user was frozen after a fraud report.
        case userFrozen(token: String)
        /// A lost factor of the user can be replaced after the wait of the policy, unless somebody
        /// cancels that.
        case recoveryWaiting(token: String)
        /// A lost factor of the user was replaced.
        case recoveryDone(token: String)
        /// The replacement of a lost factor was cancelled.
        case recoveryCancelled(token: String)
        /// An event type that this version does not know. This is no fault: answer 2xx, and ignore
        /// the event.
        case other
    }

    /// The id of the event, the same for every attempt to deliver it.
    public let id: String
    /// The event type, such as `login.decided`.
    public let type: String
    /// The `timestamp` of the event.
    public let at: Timestamp
    /// The content of the event, by its type.
    public let what: EventType
    /// The `data` of the webhook as the relay sent it. It contains more members than `what`.
    public let data: JSONObject

    /// Reads an event.
    ///
    /// - Parameter body: a body whose signature was already verified.
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
        case "pin.locked": return .pinLocked(token: try data.text("token"))
        case "pin.changed": return .pinChanged(token: try data.text("token"))
        case "puk.locked": return .pukLocked(token: try data.text("token"))
        case "unlock.issued": return .unlockIssued(token: try data.text("token"))
        case "temporary.issued": return .temporaryIssued(token: try data.text("token"))
        case "temporary.used": return .temporaryUsed(token: try data.text("token"))
        case "secret.delivered": return .secretDelivered(token: try data.text("token"), try Device(data))
        case "device.certified": return .deviceCertified(token: try data.text("token"), try Device(data))
        case "codes.locked": return .codesLocked(token: try data.text("token"))
        case "user.locked": return .userLocked(token: try data.text("token"))
        case "user.frozen": return .userFrozen(token: try data.text("token"))
        case "recovery.waiting": return .recoveryWaiting(token: try data.text("token"))
        case "recovery.done": return .recoveryDone(token: try data.text("token"))
        case "recovery.cancelled": return .recoveryCancelled(token: try data.text("token"))
        default: return .other
        }
    }
}
