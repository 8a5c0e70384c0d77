import Bytes
import Crypto
import Domain
import Log
import Webhooks
import World

/// The store port of webhook secrets that the relays replace by themselves.
///
/// Purpose: a webhook secret that leaked is worth nothing after a while. Only the website can put a
/// new secret to use, so the relays make one only for a website that fetches its secrets.
///
/// Invariants:
/// - A secret that the website has fetched signs until the website has fetched the next one, and a
///   week longer. Meanwhile the relays sign with both. So no website refuses a webhook, however late
///   it fetches, unless each fetch of a week after a first one fails.
/// - No further secret is made before the newest one was fetched, so there are never three.
/// - A change is conditional on the sealed secrets that were read. So relays that roll at the same
///   time make one secret.
///
/// Failure modes: a website stops fetching. Its last two secrets stay valid, and nothing else
/// changes. The store fails: the next minute tries again. Secrets that do not open stay, are logged,
/// and keep no others from being replaced.
///
/// `WebhookSecretRollingTests.swift` tests it.
public protocol WebhookSecretStore: Sendable {
    /// Returns the secrets of a website; nil if it has no webhook endpoint.
    func webhookSecrets(of website: WebsiteID) async throws(StoreFailure) -> StoredWebhookSecrets?
    /// Stores that the website has these secrets. Returns false if somebody has changed them.
    ///
    /// - Parameter previousUntil: the end of the former secret; nil if there is none.
    func recordFetch(
        of secrets: StoredWebhookSecrets, previousUntil: Timestamp?, at now: Timestamp, as operation: Operation
    ) async throws(StoreFailure) -> Bool
    /// Returns some secrets that were fetched and are older than `madeBefore`, and that are valid
    /// alone, the oldest first.
    ///
    /// - Parameter last: the secrets after which the answer begins; nil for the oldest.
    func agedWebhookSecrets(
        after last: StoredWebhookSecrets?, madeBefore: Timestamp, at now: Timestamp
    ) async throws(StoreFailure) -> [StoredWebhookSecrets]
    /// Replaces the secrets. Returns false if somebody else has changed them.
    func roll(
        _ secrets: StoredWebhookSecrets, to sealed: [UInt8], sealedBy key: String, at now: Timestamp,
        as operation: Operation
    ) async throws(StoreFailure) -> Bool
}

/// The secrets of a website as the store has them.
public struct StoredWebhookSecrets: Sendable, Equatable {
    public let website: WebsiteID
    /// The website's name that operators use.
    public let name: String
    /// The sealed text of one or two secrets. See `WebhookSecretSeal`.
    public let sealed: [UInt8]
    public let previousUntil: Timestamp?
    /// When the newest secret was made.
    public let madeAt: Timestamp
    /// When the website fetched the newest secret last.
    public let fetchedAt: Timestamp?

    public init(
        website: WebsiteID, name: String, sealed: [UInt8], previousUntil: Timestamp?, madeAt: Timestamp,
        fetchedAt: Timestamp?
    ) {
        self.website = website
        self.name = name
        self.sealed = sealed
        self.previousUntil = previousUntil
        self.madeAt = madeAt
        self.fetchedAt = fetchedAt
    }
}

/// The secrets that a website fetches.
public struct FetchedWebhookSecrets: Sendable {
    /// The newest secret: `whsec_` and base64.
    public let current: Secret
    /// The secret before, with its end; nil if it has ended.
    public let former: (secret: Secret, until: Timestamp)?
    public let madeAt: Timestamp
    /// The time after which the relays make another secret; nil if they do not.
    public let nextAt: Timestamp?
}

extension Relay {
    /// Returns the webhook secrets of a website, and records that it has them.
    public func webhookSecrets(for website: Website) async throws(Refusal) -> FetchedWebhookSecrets {
        // Another relay may roll meanwhile. The second time finds what it has made.
        for _ in 0..<2 {
            let row = try await withStore("webhookSecrets") { () async throws(StoreFailure) in
                try await store.webhookSecrets(of: website.id)
            }
            guard let row else { throw .notFound }
            guard let found = secrets(of: row) else {
                log.error("webhook.sealed", [.website: row.name])
                throw .broken
            }
            let now = time.now()
            let secrets = found.fetched(at: now)
            let isRecorded = try await withStore("webhookSecrets") { () async throws(StoreFailure) in
                try await store.recordFetch(
                    of: row, previousUntil: secrets.former?.until, at: now, as: operations.new())
            }
            guard isRecorded else { continue }
            log.info("webhook.secret.fetched", [.website: row.name])
            return FetchedWebhookSecrets(
                current: secrets.current.text, former: secrets.former.map { ($0.secret.text, $0.until) },
                madeAt: row.madeAt, nextAt: adjustable.rolling.webhooks.map { row.madeAt + $0 })
        }
        throw .unavailable
    }

    /// Makes new webhook secrets for the websites whose secrets are old enough. The daemon calls it
    /// every minute.
    public func rollWebhookSecrets() async {
        guard let period = adjustable.rolling.webhooks else { return }
        let now = time.now()
        var (rolled, last) = (0, StoredWebhookSecrets?.none)
        while rolled < Self.mostRolls {
            let rows = try? await withStore("webhookSecrets") { [last] () async throws(StoreFailure) in
                try await store.agedWebhookSecrets(after: last, madeBefore: now - period, at: now)
            }
            guard let rows, let end = rows.last else { return }
            for row in rows where await roll(row, at: now) { rolled += 1 }
            last = end
        }
    }

    /// The number of secrets that a round replaces. A round of more would keep the relay busy.
    private static let mostRolls = 50

    /// Returns false if the secrets stay as they are.
    private func roll(_ row: StoredWebhookSecrets, at now: Timestamp) async -> Bool {
        let sealer = sealer
        guard let found = secrets(of: row) else {
            log.error("webhook.sealed", [.website: row.name])
            return false
        }
        let new = found.rolled(to: .make(randomness), at: now)
        let associated = WebhookSecretSeal.associated(website: row.website)
        guard let sealed = try? sealer.seal(new.text.reveal(), associated: associated, randomness: randomness) else {
            log.error("webhook.seal", [.website: row.name])
            return false
        }
        let operation = operations.new()
        let isDone = try? await withStore("webhookSecrets") { () async throws(StoreFailure) in
            try await store.roll(row, to: sealed, sealedBy: sealer.currentID, at: now, as: operation)
        }
        guard isDone == true else { return false }
        metrics.rolled(.webhooks)
        log.notice("webhook.rolled", [.website: row.name, .operation: operation.id.text])
        return true
    }

    private func secrets(of row: StoredWebhookSecrets) -> WebhookSecrets? {
        let associated = WebhookSecretSeal.associated(website: row.website)
        guard let text = try? sealer.open(row.sealed, associated: associated) else { return nil }
        return WebhookSecrets(text: Secret(text), previousUntil: row.previousUntil)
    }
}

extension WebhookSecrets {
    /// Returns the secrets after a roll: the present one is valid until the website has the new one.
    func rolled(to new: WebhookSecret, at now: Timestamp) -> WebhookSecrets {
        WebhookSecrets(current: new, former: Former(current, until: Self.untilFetched))
    }

    /// Returns the secrets after the website has fetched them: the former one ends a week later. The
    /// answer to this fetch may be lost.
    func fetched(at now: Timestamp) -> WebhookSecrets {
        guard let former, now < former.until else { return WebhookSecrets(current: current) }
        guard former.until == Self.untilFetched else { return self }
        return WebhookSecrets(current: current, former: Former(former.secret, until: now + Self.overlapAfterFetch))
    }
}
