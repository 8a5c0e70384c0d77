import DeliveryOutcomes
import Domain
import Pushes
import Relay

/// The courier for phones that Apple's service reaches, or a service with Apple's protocol.
public final class APNsCourier: PushCourier {
    private let sender: APNsSender

    public init(_ sender: APNsSender) { self.sender = sender }

    public func serves(_ platform: Platform, pushToken: String) -> Bool { Self.isFor(platform, pushToken: pushToken) }

    /// Returns whether a phone is reached through Apple. A phone of unknown platform counts as
    /// Apple's if its token has the form of a device token. An iOS phone always counts, so that an
    /// invalid token is reported as an error.
    static func isFor(_ platform: Platform, pushToken: String) -> Bool {
        switch platform {
        case .ios: true
        case .other: APNsSender.isToken(pushToken)
        case .android, .web: false
        }
    }

    public func service(of push: Push) -> PushService {
        let host = sender.host(for: push.environment == .sandbox ? .sandbox : .production)
        return .configured(host: host.name, isUnreachable: host.isDown)
    }

    public func send(_ push: Push) async -> DeliveryOutcome { await sender.send(push.notification) }
}

extension Push {
    var notification: APNsNotification {
        APNsNotification(
            id: id.uuid, deviceToken: deviceToken, environment: environment == .sandbox ? .sandbox : .production,
            payload: APNsPayload.bytes(for: self),
            // A repetition replaces the notification that it repeats. Apple reads this value; a
            // challenge id names no person.
            collapseID: challenge.text, expiresAt: expiresAt, deliverBy: deliverBy, owner: website)
    }
}

extension OutboxEntryID {
    /// The id as a UUID in the canonical form of RFC 9562, in lower case.
    var uuid: String {
        var rest = Substring(text)
        let groups = [8, 4, 4, 4, 12].map { count in
            defer { rest = rest.dropFirst(count) }
            return rest.prefix(count)
        }
        return groups.joined(separator: "-")
    }
}
