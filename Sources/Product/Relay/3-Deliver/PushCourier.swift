import DeliveryOutcomes
import Domain
import World

/// What leaves for a phone: enough to say who asks, never enough to answer.
public struct Push: Sendable, Equatable {
    /// The same at every attempt, so that the push service can tell a repetition.
    public let id: OutboxEntryID
    public let challenge: ChallengeID
    public let deviceToken: String
    public let environment: PushEnvironment
    public let detail: PushDetail
    /// The website's name as people know it.
    public let website: String
    public let service: String?
    public let ip: String?
    public let place: String?
    public let expiresAt: Timestamp
    /// By then it must be known what becomes of it.
    public let deliverBy: Timestamp

    public init(
        id: OutboxEntryID, challenge: ChallengeID, deviceToken: String, environment: PushEnvironment,
        detail: PushDetail,
        website: String, service: String?, ip: String?, place: String?, expiresAt: Timestamp,
        deliverBy: Timestamp? = nil
    ) {
        self.id = id
        self.challenge = challenge
        self.deviceToken = deviceToken
        self.environment = environment
        self.detail = detail
        self.website = website
        self.service = service
        self.ip = ip
        self.place = place
        self.expiresAt = expiresAt
        self.deliverBy = deliverBy ?? expiresAt
    }
}

/// A push service. An implementation answers within ten seconds, and before the push's `deliverBy`.
public protocol PushCourier: Sendable {
    /// Whether phones of this platform, with such a push token, are this service's.
    func serves(_ platform: Platform, pushToken: String) -> Bool
    /// What is wrong with a push token that a phone of this platform brings; nil where nothing is, or nobody knows.
    func fault(in pushToken: String, of platform: Platform) -> String?
    func send(_ push: Push) async -> PushOutcome
}

extension PushCourier {
    /// All of them, where a service says nothing else.
    public func serves(_ platform: Platform, pushToken: String) -> Bool { true }

    /// Anything may be a token, where a service says nothing else.
    public func fault(in pushToken: String, of platform: Platform) -> String? { nil }

    /// Where none of a user's phones has a key, none can ask by itself: there a token that cannot be right is a mistake to
    /// be told about.
    func reaches(_ platform: Platform, pushToken: String, canAsk: Bool) -> Bool {
        !pushToken.isEmpty && (!canAsk || serves(platform, pushToken: pushToken))
    }
}
