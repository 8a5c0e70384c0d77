import Domain
import Webhooks
import World

/// Tell: what the websites are to be told by themselves. Their rows of the outbox are claimed apart from all others, and
/// website by website: of one that is down there may be very many.
public protocol WebhookStore: Sendable {
    /// The websites with calls that are due, and how it stands with each; disabled ones are not among them.
    func dueEndpoints(at: Timestamp) async throws(StoreFailure) -> [DueEndpoint]
    /// Leases the oldest that are due of one website: nobody's, this relay's own whose lease is over, a dead one's. Never
    /// one before which another about its challenge is open.
    func leaseWebhooks(_ claim: WebhookLease) async throws(StoreFailure) -> ClaimedRows<WebhookRow>
    /// What came of calls, and of the website with them. Run twice, it changes nothing the second time. True where it
    /// disabled the website: once.
    func settle(_ settled: WebhookSettlement, as operation: Operation) async throws(StoreFailure) -> Bool
    func webhookBacklog(at: Timestamp) async throws(StoreFailure) -> WebhookBacklog
}

/// A website that something is due for.
public struct DueEndpoint: Sendable, Equatable {
    public let id: WebsiteID
    /// As all relays see it.
    public let health: WebhookHealth
    public let place: EndpointRevision

    public init(id: WebsiteID, standing: WebhookHealth, place: EndpointRevision) {
        self.id = id
        self.health = standing
        self.place = place
    }
}

/// Where a website is called, and an operator's last word about it. With another it begins anew.
public struct EndpointRevision: Sendable, Equatable {
    public let url: String
    public let operation: OperationID

    public init(url: String, operation: OperationID) {
        self.url = url
        self.operation = operation
    }
}

public struct WebhookLease: Sendable {
    /// What is claimed is known by it.
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

/// A call as it is made from the store, with what it tells: nothing of that changes once it is to be told.
public struct WebhookRow: Sendable {
    /// The same in every try.
    public let id: OutboxEntryID
    public let event: String
    public let website: WebsiteID
    /// As the operator knows it.
    public let websiteName: String
    public let url: String
    /// Sealed: see `WebhookSecretSeal`. Texts of one or two secrets, with a space between them.
    public let secrets: [UInt8]
    /// Until when the second is signed with, too.
    public let formerUntil: Timestamp?
    public let user: UserID
    public let token: UserToken
    /// Nil where it is about none.
    public let challenge: ChallengeRow?
    /// Nil where it is about none; a login's is in its challenge.
    public let device: WebhookDevice?
    public let createdAt: Timestamp
    public let expiresAt: Timestamp
    /// The tries that failed so far.
    public let failures: Int
    /// Among those about its challenge.
    public let place: Int

    public init(
        id: OutboxEntryID, event: String, website: WebsiteID, websiteName: String, url: String, secrets: [UInt8],
        formerUntil: Timestamp?, user: UserID, token: UserToken, challenge: ChallengeRow?, device: WebhookDevice?,
        createdAt: Timestamp, expiresAt: Timestamp, failures: Int, place: Int
    ) {
        self.id = id
        self.event = event
        self.website = website
        self.websiteName = websiteName
        self.url = url
        self.secrets = secrets
        self.formerUntil = formerUntil
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

/// What a website is told of a phone: what it has been since it was bound.
public struct WebhookDevice: Sendable, Equatable {
    public let id: DeviceID
    public let name: String?
    public let platform: Platform
    public let publicKey: [UInt8]?
    public let binding: String?

    public init(id: DeviceID, name: String?, platform: Platform, publicKey: [UInt8]?, binding: String?) {
        self.id = id
        self.name = name
        self.platform = platform
        self.publicKey = publicKey
        self.binding = binding
    }
}

/// What came of the calls to one website that one of its answers decided.
public struct WebhookSettlement: Sendable {
    public typealias Effect = WebhookQueue<OutboxEntryID, ChallengeID>.Effect

    /// What the one that was tried counts for its website.
    public enum EndpointResult: Sendable, Equatable {
        case delivered
        case failed
        /// It was no try, or the website is counted no more.
        case nothing
    }

    public let website: WebsiteID
    /// Where the one that was tried was sent. What came of it is nothing of another place, where the website has moved
    /// meanwhile. Nil where nothing was tried.
    public let url: String?
    public let relay: RelayID
    public let at: Timestamp
    public let effects: [Effect]
    /// Why nothing came of the one that was tried. It is as long as its column, and printable.
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

/// How it stands with all callbacks.
public struct WebhookBacklog: Sendable, Equatable {
    /// When that was due which has been due for longest, of the websites that are called; nil where nothing is late.
    public let oldestDue: Timestamp?
    public let dead: Int64
    /// Websites that are called no more, though they have a callback.
    public let disabled: Int64
    /// Websites with a callback.
    public let websites: Int64

    public init(oldestDue: Timestamp?, dead: Int64, disabled: Int64, websites: Int64) {
        self.oldestDue = oldestDue
        self.dead = dead
        self.disabled = disabled
        self.websites = websites
    }
}
