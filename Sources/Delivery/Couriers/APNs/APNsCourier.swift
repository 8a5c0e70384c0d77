import APNs
import DeliveryOutcomes
import Domain
import Relay

/// The phones that Apple's service reaches, or one that speaks as it does.
public final class APNsCourier: PushCourier {
    private let sender: APNsSender

    public init(_ sender: APNsSender) { self.sender = sender }

    public func serves(_ platform: Platform, pushToken: String) -> Bool { Self.isFor(platform, pushToken: pushToken) }

    /// A phone that did not say what it is may be Apple's, if its token looks so. Of one that says that it is, a token
    /// that cannot be right is a mistake to be told about.
    static func isFor(_ platform: Platform, pushToken: String) -> Bool {
        switch platform {
        case .ios: true
        case .other: APNsSender.isToken(pushToken)
        case .android, .web: false
        }
    }

    public func send(_ push: Push) async -> PushOutcome { await sender.send(push.notification) }
}

extension Push {
    var notification: APNsNotification {
        APNsNotification(
            id: id.uuid, deviceToken: deviceToken, environment: environment == .sandbox ? .sandbox : .production,
            payload: APNsPayload.bytes(for: self),
            // A repetition takes the place of what it repeats. The challenge names nobody; Apple reads this.
            collapseID: challenge.text, expiresAt: expiresAt, deliverBy: deliverBy)
    }
}

extension OutboxEntryID {
    /// The canonical text of RFC 9562, in lower case.
    var uuid: String {
        var rest = Substring(text)
        let groups = [8, 4, 4, 4, 12].map { count in
            defer { rest = rest.dropFirst(count) }
            return rest.prefix(count)
        }
        return groups.joined(separator: "-")
    }
}
