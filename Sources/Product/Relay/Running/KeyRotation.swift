import Bytes
import Crypto
import Domain
import Log
import Synchronization
import World

/// When the master key has changed, what is sealed under the old one is sealed anew, a few rows at a time, while everything
/// goes on.
public protocol KeyRotationStore: Sendable {
    /// Some of the factors that are sealed under that key, without the first so many.
    func factors(sealedBy key: String, skipping: Int) async throws(StoreFailure) -> [SealedFactor]
    /// Each only where its secret is the old one still.
    func reseal(_ factors: [ResealedFactor]) async throws(StoreFailure)
    /// Some of the secrets of callbacks that are sealed under that key, without the first so many.
    func webhooks(sealedBy key: String, skipping: Int) async throws(StoreFailure) -> [SealedSecrets]
    /// Each only where it is the old one still.
    func reseal(_ secrets: [ReencryptedSecrets]) async throws(StoreFailure)
    /// Signs the rows that an older key has signed; how many there were.
    func signAgain() async throws(StoreFailure) -> Int
}

/// What a website's callbacks are signed with, sealed.
public struct SealedSecrets: Sendable, Equatable {
    public let website: WebsiteID
    public let secrets: [UInt8]

    public init(website: WebsiteID, secrets: [UInt8]) {
        self.website = website
        self.secrets = secrets
    }
}

public struct ReencryptedSecrets: Sendable {
    public let website: WebsiteID
    public let old: [UInt8]
    public let new: [UInt8]
    /// Under which the new one is sealed.
    public let key: String

    public init(website: WebsiteID, old: [UInt8], new: [UInt8], key: String) {
        self.website = website
        self.old = old
        self.new = new
        self.key = key
    }
}

/// What a factor's secret is sealed with.
public struct SealedFactor: Sendable, Equatable {
    public let id: FactorID
    public let kind: Factor
    public let user: UserID
    public let website: WebsiteID
    public let secret: [UInt8]

    public init(id: FactorID, kind: Factor, user: UserID, website: WebsiteID, secret: [UInt8]) {
        self.id = id
        self.kind = kind
        self.user = user
        self.website = website
        self.secret = secret
    }
}

public struct ResealedFactor: Sendable {
    public let id: FactorID
    public let old: [UInt8]
    public let new: [UInt8]
    /// Under which the new one is sealed.
    public let key: String

    public init(id: FactorID, old: [UInt8], new: [UInt8], key: String) {
        self.id = id
        self.old = old
        self.new = new
        self.key = key
    }
}

extension Relay {
    /// Called by the daemon's timer every minute. Only what an older key sealed is touched: a relay that does not use the newest
    /// key yet leaves alone what others have sealed under it.
    public func reseal() async {
        let sealer = sealer
        for key in sealer.oldKeyIDs {
            let (factors, stuckFactors) = await resealAll(to: sealer) { stuck throws(Refusal) in
                try await resealSome(of: key, to: sealer, skipping: stuck)
            }
            if factors > 0 { log.notice("factor.resealed", [.keyID: sealer.currentID, .count: factors]) }
            if stuckFactors > 0 { log.error("factor.stuck", [.keyID: key, .count: stuckFactors]) }
            let (callbacks, stuckCallbacks) = await resealAll(to: sealer) { stuck throws(Refusal) in
                try await resealWebhookSecrets(of: key, to: sealer, skipping: stuck)
            }
            if callbacks > 0 { log.notice("callback.resealed", [.keyID: sealer.currentID, .count: callbacks]) }
            if stuckCallbacks > 0 { log.error("callback.stuck", [.keyID: key, .count: stuckCallbacks]) }
        }
        await signAgain()
    }

    /// All rows are gone through, so this rests for a while once there was nothing to do.
    private func signAgain() async {
        let now = time.instant()
        let isDue = signing.withLock { signing in
            guard !signing.isRunning, signing.notBefore.map({ $0 <= now }) ?? true else { return false }
            signing.isRunning = true
            return true
        }
        guard isDue else { return }
        let count = try? await withStore("signAnew") { () async throws(StoreFailure) in try await store.signAgain() }
        if let count, count > 0 { log.notice("row.signed", [.keyID: sealer.currentID, .count: count]) }
        signing.withLock { signing in
            signing.isRunning = false
            signing.notBefore = count == 0 ? now + .seconds(600) : nil
        }
    }

    /// Rows that are done leave the set; those that do not open stay, and are passed over.
    private func resealAll(
        to sealer: Sealer, _ some: (Int) async throws(Refusal) -> (done: Int, failed: Int)
    ) async -> (done: Int, stuck: Int) {
        var (done, stuck) = (0, 0)
        while let (count, failed) = try? await some(stuck) {
            done += count
            stuck += failed
            if count + failed == 0 || self.sealer.currentID != sealer.currentID { break }
        }
        return (done, stuck)
    }

    private func resealWebhookSecrets(
        of key: String, to sealer: Sealer, skipping stuck: Int
    ) async throws(Refusal) -> (done: Int, failed: Int) {
        let rows = try await withStore("reseal") { () async throws(StoreFailure) in
            try await store.webhooks(sealedBy: key, skipping: stuck)
        }
        let changes = rows.compactMap { row in
            resealed(row.secrets, WebhookSecretSeal.associated(website: row.website), sealer).map {
                ReencryptedSecrets(website: row.website, old: row.secrets, new: $0, key: sealer.currentID)
            }
        }
        if !changes.isEmpty {
            try await withStore("reseal") { () async throws(StoreFailure) in try await store.reseal(changes) }
        }
        return (changes.count, rows.count - changes.count)
    }

    /// Nil for what does not open.
    private func resealed(_ old: [UInt8], _ associated: [UInt8], _ sealer: Sealer) -> [UInt8]? {
        guard let secret = try? sealer.open(old, associated: associated) else { return nil }
        return try? sealer.seal(secret, associated: associated, randomness: randomness)
    }

    func resealSome(
        of key: String, to sealer: Sealer, skipping stuck: Int
    ) async throws(Refusal) -> (done: Int, failed: Int) {
        let rows = try await withStore("reseal") { () async throws(StoreFailure) in
            try await store.factors(sealedBy: key, skipping: stuck)
        }
        var changes: [ResealedFactor] = []
        for row in rows {
            let associated = FactorSeal.associated(website: row.website, user: row.user, kind: row.kind, row: row.id)
            guard let sealed = resealed(row.secret, associated, sealer) else { continue }
            changes.append(ResealedFactor(id: row.id, old: row.secret, new: sealed, key: sealer.currentID))
        }
        if !changes.isEmpty {
            try await withStore("reseal") { () async throws(StoreFailure) in try await store.reseal(changes) }
        }
        return (changes.count, rows.count - changes.count)
    }
}
