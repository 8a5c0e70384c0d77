import DeliveryOutcomes
import Domain
import Relay

/// Several push services as one: each phone belongs to the first that serves it.
public final class PushServices: PushCourier {
    private let services: [any PushCourier]

    public init(_ services: [any PushCourier]) { self.services = services }

    public func serves(_ platform: Platform, pushToken: String) -> Bool {
        services.contains { $0.serves(platform, pushToken: pushToken) }
    }

    public func fault(in pushToken: String, of platform: Platform) -> String? {
        let service = services.first { $0.serves(platform, pushToken: pushToken) }
        if let fault = service?.fault(in: pushToken, of: platform) { return fault }
        // Whatever it came under, it is sent by the service whose it is.
        return services.first { $0.serves(.other, pushToken: pushToken) }?.fault(in: pushToken, of: .other)
    }

    /// Whose a push is shows in its token: those of one service are none of another's. One that is nobody's is refused by
    /// the first, which says what it wanted.
    public func send(_ push: Push) async -> PushOutcome {
        let token = push.deviceToken
        guard let service = services.first(where: { $0.serves(.other, pushToken: token) }) ?? services.first else {
            return .badRequest("there is no push service")
        }
        return await service.send(push)
    }
}
