import DeliveryOutcomes
import Domain
import JSON
import Pushes
import Relay

/// The courier for Android phones that Google's service reaches, or a service with FCM's protocol.
public final class FCMCourier: PushCourier {
    private let sender: FCMSender

    public init(_ sender: FCMSender) { self.sender = sender }

    public func serves(_ platform: Platform, pushToken: String) -> Bool { Self.isFor(platform, pushToken: pushToken) }

    /// Returns whether a phone is reached through FCM. An Android phone may also have a subscription
    /// of UnifiedPush, and a phone of unknown platform a registration token.
    static func isFor(_ platform: Platform, pushToken: String) -> Bool {
        switch platform {
        case .android, .other: FCMSender.isToken(pushToken)
        case .ios, .web: false
        }
    }

    public func service(of push: Push) -> PushService {
        let host = sender.host
        return .configured(host: host.name, isUnreachable: host.isDown)
    }

    public func send(_ push: Push) async -> DeliveryOutcome { await sender.send(push.message) }
}

extension Push {
    var message: FCMMessage {
        FCMMessage(
            id: id.uuid, token: deviceToken, data: fcmData, expiresAt: expiresAt, deliverBy: deliverBy,
            owner: website, attempts: attempts)
    }

    /// The members of a push to a browser. FCM allows only texts, so the list of arguments is its
    /// JSON.
    private var fcmData: JSONObject {
        PushText.payload(for: self) { words in
            var data = JSONObject(
                words.members.map { member in
                    (member.name, .string(member.value.string ?? JSONWriter.text(member.value)))
                })
            data["challenge"] = .string(challenge.text)
            return data
        } fits: {
            FCMMessage.bytes(of: $0) <= FCMMessage.dataLimit
        }
    }
}
