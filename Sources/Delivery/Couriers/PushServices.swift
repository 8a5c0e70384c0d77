import DeliveryOutcomes
import Domain
import Relay

/// A courier over several push services: each phone belongs to the first service that serves it.
public final class PushServices: PushCourier {
    private let services: [any PushCourier]

    public init(_ services: [any PushCourier]) { self.services = services }

    public func serves(_ platform: Platform, pushToken: String) -> Bool {
        services.contains { $0.serves(platform, pushToken: pushToken) }
    }

    public func fault(in pushToken: String, of platform: Platform) -> LocalizedText? {
        let service = services.first { $0.serves(platform, pushToken: pushToken) }
        if let fault = service?.fault(in: pushToken, of: platform) { return fault }
        // The token alone decides which service sends, whatever platform was stated.
        return services.first { $0.serves(.other, pushToken: pushToken) }?.fault(in: pushToken, of: .other)
    }

    public func service(of push: Push) -> PushService { courier(of: push)?.service(of: push) ?? .chosen }

    public func send(_ push: Push) async -> DeliveryOutcome {
        guard let courier = courier(of: push) else {
            return .misconfigured(.message, reason: "no push service serves this phone")
        }
        return await courier.send(push)
    }

    /// Returns the courier of the service that the push's token belongs to. The token forms of the
    /// services do not overlap. A token that fits none goes to the first service, whose refusal
    /// names the form that it expects.
    private func courier(of push: Push) -> (any PushCourier)? {
        services.first { $0.serves(.other, pushToken: push.deviceToken) } ?? services.first
    }
}
