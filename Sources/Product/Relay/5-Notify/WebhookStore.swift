import Domain
import Webhooks
import World

/// The store operations of webhooks. Webhooks are leased separately from other outbox entries and
/// for one website at a time, because a website that is down may have very many.
public protocol WebhookStore: Sendable {
    /// The endpoints with due webhooks and their health. Disabled endpoints are not included.
    func dueEndpoints(at: Timestamp) async throws(StoreFailure) -> [DueEndpoint]
    /// Leases the oldest due webhooks of one website. A webhook can be leased if it has no holder,
    /// or if its holder is this relay or a dead relay. A webhook is never leased while an earlier
    /// one about the same challenge is open.
    func leaseWebhooks(_ lease: WebhookLease) async throws(StoreFailure) -> LeasedRows<WebhookRow>
    /// Records the outcomes of webhooks and the health of their endpoint. A repetition changes
    /// nothing.
    ///
    /// - Returns: true once, if this call disabled the endpoint.
    func settle(_ settled: WebhookSettlement, as operation: Operation) async throws(StoreFailure) -> Bool
    func webhookBacklog(at: Timestamp) async throws(StoreFailure) -> WebhookBacklog
}

/// A webhook endpoint with due webhooks.
public struct DueEndpoint: Sendable, Equatable {
    public let id: WebsiteID
    /// The health that all relays share.
    public let health: WebhookHealth
    public let place: EndpointRevision

    public init(id: WebsiteID, standing: WebhookHealth, place: EndpointRevision) {
        self.id = id
        self.health = standing
        self.place = place
    }
}

/// The URL of an endpoint, and the operation of an operator's last change to it. If one of them
/// changes, the queue is reset.
public struct EndpointRevision: Sendable, Equatable {
    public let url: String
    public let operation: OperationID

    public init(url: String, operation: OperationID) {
        self.url = url
        self.operation = operation
    }
}

public struct WebhookLease: Sendable {
    /// The id by which the leased entries are found.
    public let id: OperationID
    public let relay: RelayID
    public let website: WebsiteID
    public let now: Timestamp
    public let leasedUntil: Timestamp
    public let limit: Int

    public init(
        id: OperationID, relay: RelayID, website: WebsiteID, now: Timestamp, leasedUntil: Timestamp, limit: Int
    ) {
        self.id = id
        self.relay = relay
        self.website = website
        self.now = now
        self.leasedUntil = leasedUntil
        self.limit = limit
    }
}

/// A webhook as the relay builds it from the store. Its data does not change after the entry was
/// written.
public struct WebhookRow: Sendable {
    /// The same at every attempt.
    public let id: OutboxEntryID
    public let event: String
    public let website: WebsiteID
    /// The website's name that operators use.
    public let websiteName: String
    public let url: String
    /// The sealed text of one or two secrets, which a space separates. See `WebhookSecretSeal`.
    public let secrets: [UInt8]
    /// The end of the time during which the second (former) secret signs too.
    public let previousUntil: Timestamp?
    public let user: UserID
    public let token: UserToken
    /// The challenge; nil if the webhook is not about one.
    public let challenge: ChallengeRow?
    /// The phone; nil if the webhook is not about one. The phone of a login is in its challenge.
    public let device: WebhookDevice?
    public let createdAt: Timestamp
    public let expiresAt: Timestamp
    /// The number of failed attempts so far.
    public let failures: Int
    /// The position among the webhooks about the same challenge.
    public let place: Int

    public init(
        id: OutboxEntryID, event: String, website: WebsiteID, websiteName: String, url: String, secrets: [UInt8],
        previousUntil: Timestamp?, user: UserID, token: UserToken, challenge: ChallengeRow?, device: WebhookDevice?,
        createdAt: Timestamp, expiresAt: Timestamp, failures: Int, place: Int
    ) {
        self.id = id
        self.event = event
        self.website = website
        self.websiteName = websiteName
        self.url = url
        self.secrets = secrets
        self.previousUntil = previousUntil
        self.user = user
        self.token = token
        self.challenge = challenge
        self.device = device
        self.createdAt = createdAt
        self.expiresAt = expiresAt
        self.failures = failures
        self.place = place
    }
}

/// The data of a phone in a webhook, which has not changed since the phone was bound.
public struct WebhookDevice: Sendable, Equatable {
    public let id: DeviceID
    public let name: String?
    public let platform: Platform
    public let publicKey: [UInt8]?
    public let agreementKey: [UInt8]?
    public let binding: String?

    public init(
        id: DeviceID, name: String?, platform: Platform, publicKey: [UInt8]?, agreementKey: [UInt8]?, binding: String?
    ) {
        self.id = id
        self.name = name
        self.platform = platform
        self.publicKey = publicKey
        self.agreementKey = agreementKey
        self.binding = binding
    }
}

/// The outcome of one attempt: its effects on the webhooks of one website and on the health of the
/// endpoint.
public struct WebhookSettlement: Sendable {
    public typealias Effect = WebhookQueue<OutboxEntryID, ChallengeID>.Effect

    /// The result of the attempt that counts for the endpoint.
    public enum EndpointResult: Sendable, Equatable {
        case delivered
        case failed
        /// There was no attempt, or it does not count for the endpoint.
        case nothing
    }

    public let website: WebsiteID
    /// The URL of the attempt; nil if there was none. If the endpoint has another URL now, the
    /// result does not count for it.
    public let url: String?
    public let relay: RelayID
    public let at: Timestamp
    public let effects: [Effect]
    /// The reason why the attempt failed. It contains only printable ASCII and fits its column.
    public let reason: String?
    public let tried: EndpointResult

    public init(
        website: WebsiteID, url: String?, relay: RelayID, at: Timestamp, effects: [Effect], reason: String?,
        tried: EndpointResult
    ) {
        self.website = website
        self.url = url
        self.relay = relay
        self.at = at
        self.effects = effects
        self.reason = reason.map(PushSettlement.printable)
        self.tried = tried
    }
}

/// The backlog of all webhooks.
public struct WebhookBacklog: Sendable, Equatable {
    /// The due time of the oldest overdue webhook of an active endpoint; nil if none is overdue.
    public let oldestDue: Timestamp?
    public let dead: Int64
    /// The number of disabled endpoints.
    public let disabled: Int64
    /// The number of websites with an endpoint.
    public let websites: Int64

    public init(oldestDue: Timestamp?, dead: Int64, disabled: Int64, websites: Int64) {
        self.oldestDue = oldestDue
        self.dead = dead
        self.disabled = disabled
        self.websites = websites
    }
}
