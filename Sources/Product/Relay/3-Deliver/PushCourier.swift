import DeliveryOutcomes
import Domain
import World

/// A push to one phone. It holds enough to say who asks, and never enough to answer.
public struct Push: Sendable, Equatable {
    /// The id of the push, the same at every attempt. The push service can recognise a repetition
    /// by it.
    public let id: OutboxEntryID
    public let challenge: ChallengeID
    public let user: UserID
    public let device: DeviceID
    public let deviceToken: String
    public let environment: PushEnvironment
    public let detail: PushDetail
    /// The website's display name.
    public let website: String
    public let service: String?
    public let ip: String?
    public let place: String?
    /// The time at which the website asked the user.
    public let askedAt: Timestamp
    public let expiresAt: Timestamp
    /// The latest time at which the outcome must be known.
    public let deliverBy: Timestamp
    /// The number of earlier attempts.
    public internal(set) var attempts: Int

    public init(
        id: OutboxEntryID, challenge: ChallengeID, user: UserID, device: DeviceID, deviceToken: String,
        environment: PushEnvironment, detail: PushDetail, website: String, service: String?, ip: String?,
        place: String?, askedAt: Timestamp, expiresAt: Timestamp, deliverBy: Timestamp? = nil, attempts: Int = 0
    ) {
        self.id = id
        self.challenge = challenge
        self.user = user
        self.device = device
        self.deviceToken = deviceToken
        self.environment = environment
        self.detail = detail
        self.website = website
        self.service = service
        self.ip = ip
        self.place = place
        self.askedAt = askedAt
        self.expiresAt = expiresAt
        self.deliverBy = deliverBy ?? expiresAt
        self.attempts = attempts
    }
}

/// The push service of one phone, as far as its failures tell something about other phones.
public enum PushService: Sendable, Hashable {
    /// A host that the operator has configured.
    ///
    /// - Parameter isUnreachable: whether the courier knows that it cannot connect to the host now.
    case configured(host: String, isUnreachable: Bool)
    /// A host that the user has chosen.
    case chosen
}

/// A courier to a push service. An implementation answers within ten seconds, and before the push's
/// `deliverBy`.
public protocol PushCourier: Sendable {
    /// Whether this service serves phones of this platform with this device token.
    func serves(_ platform: Platform, pushToken: String) -> Bool
    /// The fault in a device token that a phone of this platform presents; nil if the service knows
    /// of none.
    func fault(in pushToken: String, of platform: Platform) -> LocalizedText?
    /// The service that sends this push.
    func service(of push: Push) -> PushService
    func send(_ push: Push) async -> DeliveryOutcome
}

extension PushCourier {
    /// The default: a service serves all phones.
    public func serves(_ platform: Platform, pushToken: String) -> Bool { true }

    /// The default: any text may be a token.
    public func fault(in pushToken: String, of platform: Platform) -> LocalizedText? { nil }

    /// The default: one service of the operator.
    public func service(of push: Push) -> PushService { .configured(host: "push", isUnreachable: false) }

    /// Whether a push to the phone is possible. If none of the user's phones has a key (`canAsk` is
    /// false), no phone can poll `/pending`. A token that cannot be right is then an error to
    /// report, so every token that is not empty counts.
    func reaches(_ platform: Platform, pushToken: String, canAsk: Bool) -> Bool {
        !pushToken.isEmpty && (!canAsk || serves(platform, pushToken: pushToken))
    }
}
