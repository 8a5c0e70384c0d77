import Curl
import DeliveryOutcomes
import Domain
import JSON
import Relay
import WebPush

/// The courier for browsers and for phones with UnifiedPush. Each device chooses its own push
/// service.
public final class WebPushCourier: PushCourier {
    private let sender: WebPushSender

    public init(_ sender: WebPushSender) { self.sender = sender }

    /// Returns whether the device is reached by Web Push. A phone of unknown platform may also have
    /// a subscription as its token.
    public func serves(_ platform: Platform, pushToken: String) -> Bool {
        switch platform {
        case .web: true
        case .android, .other: (try? PushSubscription(token: pushToken)) != nil
        case .ios: false
        }
    }

    public func fault(in pushToken: String, of platform: Platform) -> LocalizedText? {
        do throws(PushSubscription.Fault) {
            let endpoint = try PushSubscription(token: pushToken).endpoint
            // An address is checked here; a name is checked at every send, after it was resolved.
            guard sender.addresses.refusal(of: endpoint.host) != nil else { return nil }
            return LocalizedText(
                "has an endpoint at \(endpoint.host), an address that the relay may not call",
                de: "hat einen Endpunkt bei \(endpoint.host), einer Adresse, die das Relay nicht aufrufen darf")
        } catch {
            // On other platforms, a token that is not a subscription is no fault.
            return platform == .web ? error.text : nil
        }
    }

    public func service(of push: Push) -> PushService { .chosen }

    public func send(_ push: Push) async -> DeliveryOutcome {
        let subscription: PushSubscription
        do throws(PushSubscription.Fault) {
            subscription = try PushSubscription(token: push.deviceToken)
        } catch { return .declined("the device token \(error)") }
        return await sender.send(
            WebPushMessage(
                subscription: subscription, text: push.webPayload,
                // A repetition replaces the message that it repeats. The push service reads this
                // value; a challenge id names no person.
                topic: push.challenge.text, expiresAt: push.expiresAt, deliverBy: push.deliverBy))
    }
}

extension Push {
    /// The text of a push for a service worker, with the challenge.
    var webPayload: [UInt8] {
        PushText.bytes(for: self, limit: MessageCoding.longest) { words in
            var whole = words
            whole["challenge"] = .string(challenge.text)
            return JSONWriter.write(whole)
        }
    }
}

extension PushSubscription.Fault {
    /// The message for the developer of a phone, in the languages of the API.
    fileprivate var text: LocalizedText {
        let german =
            switch self {
            case .form: "muss base64url einer Subscription der Push API sein: {endpoint, keys: {p256dh, auth}}"
            case .endpoint:
                "muss als endpoint eine https-URL mit höchstens \(PushSubscription.endpointBytes) Bytes haben"
            case .key: "muss als p256dh einen Punkt von P-256 haben, 65 Bytes als base64url"
            case .auth: "muss ein auth von 16 Bytes als base64url haben"
            }
        return LocalizedText(description, de: german)
    }
}
