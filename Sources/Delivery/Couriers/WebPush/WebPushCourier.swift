import Curl
import DeliveryOutcomes
import Domain
import JSON
import Relay
import WebPush

/// The browsers, and the phones with UnifiedPush: each is reached at a push service of its own choice.
public final class WebPushCourier: PushCourier {
    private let sender: WebPushSender

    public init(_ sender: WebPushSender) { self.sender = sender }

    /// A phone that did not say what it is may have such a subscription for a token, too.
    public func serves(_ platform: Platform, pushToken: String) -> Bool {
        switch platform {
        case .web: true
        case .android, .other: (try? PushSubscription(token: pushToken)) != nil
        case .ios: false
        }
    }

    public func fault(in pushToken: String, of platform: Platform) -> String? {
        do throws(PushSubscription.Fault) {
            let endpoint = try PushSubscription(token: pushToken).endpoint
            // A name is judged where it leads, each time that something is sent there.
            return sender.addresses.refusal(of: endpoint.host).map { "has an endpoint at an address that is \($0)" }
        } catch {
            // Of others it is only looked at if it is one.
            return platform == .web ? error.description : nil
        }
    }

    public func send(_ push: Push) async -> PushOutcome {
        let subscription: PushSubscription
        do throws(PushSubscription.Fault) {
            subscription = try PushSubscription(token: push.deviceToken)
        } catch { return .declined("the push token \(error)") }
        return await sender.send(
            WebPushMessage(
                subscription: subscription, text: push.webPayload,
                // A repetition takes the place of what it repeats. The challenge names nobody; the push service reads this.
                topic: push.challenge.text, expiresAt: push.expiresAt, deliverBy: push.deliverBy))
    }
}

extension Push {
    /// `PushText` as a service worker gets them, and the challenge.
    var webPayload: [UInt8] {
        PushText.bytes(for: self, limit: MessageCoding.longest) { words in
            var whole = words
            whole["challenge"] = .string(challenge.text)
            return JSONWriter.write(whole)
        }
    }
}
