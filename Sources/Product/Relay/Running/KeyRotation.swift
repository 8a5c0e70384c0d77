import Bytes
import Crypto
import Domain
import Log
import Synchronization
import World

/// The store port of key rotation.
///
/// When the operator changes the master key, both keys are valid for some time. Each relay then
/// seals the secrets of factors and of webhook endpoints again, under the current key. It does so
/// for a hundred rows at a time, while requests go on. It also signs rows again that an older key
/// has signed. Answers and operation secrets are not sealed again: they are deleted within a day.
/// The operator removes the old key when nothing is sealed under it.
///
/// Invariant: a row changes only if it still has the secret that was read. So two relays may reseal
/// the same row, and a secret that was replaced in between is kept. A relay touches only rows under
/// keys that are older than its own current key. So a relay that does not use the newest key yet
/// leaves rows under that key alone.
///
/// Failure modes: a secret cannot be opened. The relay skips it, logs `factor.stuck` or
/// `webhook.stuck`, and goes on with the others. If the relay stops in the middle, the next run
/// continues, because rows that are done no longer match the query.
///
/// Tested in `FactorRotationTests.swift`, `WebhookSecretRotationTests.swift` and
/// `KeyRotationTests.swift`.
public protocol KeyRotationStore: Sendable {
    /// Returns some of the factors that are sealed under a key.
    ///
    /// - Parameter skipping: the number of factors to pass over, because they could not be opened.
    func factors(sealedBy key: String, skipping: Int) async throws(StoreFailure) -> [SealedFactor]
    /// Writes the new secrets. A factor changes only if it still has the old secret.
    func reseal(_ factors: [ResealedFactor]) async throws(StoreFailure)
    /// Returns the secrets of some of the webhook endpoints that are sealed under a key.
    ///
    /// - Parameter skipping: the number of endpoints to pass over, because they could not be
    ///   opened.
    func webhooks(sealedBy key: String, skipping: Int) async throws(StoreFailure) -> [SealedSecrets]
    /// Writes the new secrets. An endpoint changes only if it still has the old secrets.
    func reseal(_ secrets: [ReencryptedSecrets]) async throws(StoreFailure)
    /// Signs the rows again that an older key has signed. Returns their number.
    func signAgain() async throws(StoreFailure) -> Int
}

/// The sealed secrets with which the webhooks of a website are signed.
public struct SealedSecrets: Sendable, Equatable {
    public let website: WebsiteID
    public let secrets: [UInt8]

    public init(website: WebsiteID, secrets: [UInt8]) {
        self.website = website
        self.secrets = secrets
    }
}

/// The webhook secrets of a website, sealed under the old key and under the new one.
public struct ReencryptedSecrets: Sendable {
    public let website: WebsiteID
    public let old: [UInt8]
    public let new: [UInt8]
    /// The id of the key that sealed the new one.
    public let key: String

    public init(website: WebsiteID, old: [UInt8], new: [UInt8], key: String) {
        self.website = website
        self.old = old
        self.new = new
        self.key = key
    }
}

/// A factor's sealed secret, with the values that it is bound to as associated data.
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

/// The secret of a factor, sealed under the old key and under the new one.
public struct ResealedFactor: Sendable {
    public let id: FactorID
    public let old: [UInt8]
    public let new: [UInt8]
    /// The id of the key that sealed the new one.
    public let key: String

    public init(id: FactorID, old: [UInt8], new: [UInt8], key: String) {
        self.id = id
        self.old = old
        self.new = new
        self.key = key
    }
}

extension Relay {
    /// Seals again what an older key has sealed, and signs rows again. The daemon's timer calls it
    /// every minute. A relay that does not use the newest key yet leaves alone what others have
    /// sealed under it.
    public func reseal() async {
        let sealer = sealer
        for key in sealer.oldKeyIDs {
            let (factors, stuckFactors) = await resealAll(to: sealer) { stuck throws(Refusal) in
                try await resealSome(of: key, to: sealer, skipping: stuck)
            }
            if factors > 0 { log.notice("factor.resealed", [.keyID: sealer.currentID, .count: factors]) }
            if stuckFactors > 0 { log.error("factor.stuck", [.keyID: key, .count: stuckFactors]) }
            let (webhooks, stuckWebhooks) = await resealAll(to: sealer) { stuck throws(Refusal) in
                try await resealWebhookSecrets(of: key, to: sealer, skipping: stuck)
            }
            if webhooks > 0 { log.notice("webhook.resealed", [.keyID: sealer.currentID, .count: webhooks]) }
            if stuckWebhooks > 0 { log.error("webhook.stuck", [.keyID: key, .count: stuckWebhooks]) }
        }
        await signAgain()
    }

    /// Signs rows again, in one run at a time. A run reads all rows, so after a run without changes
    /// the next one starts ten minutes later.
    private func signAgain() async {
        let now = time.instant()
        let isDue = signing.withLock { signing in
            guard !signing.isRunning, signing.notBefore.map({ $0 <= now }) ?? true else { return false }
            signing.isRunning = true
            return true
        }
        guard isDue else { return }
        let count = try? await withStore("rowMACs") { () async throws(StoreFailure) in try await store.signAgain() }
        if let count, count > 0 { log.notice("row.signed", [.keyID: sealer.currentID, .count: count]) }
        signing.withLock { signing in
            signing.isRunning = false
            signing.notBefore = count == 0 ? now + .seconds(600) : nil
        }
    }

    /// Reseals until no row is left or the current key changes. A resealed row no longer matches
    /// the query. A row that cannot be opened still matches, so the next query skips it.
    ///
    /// - Parameter some: reseals some rows, and skips the given number of rows first.
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
        let rows = try await withStore("keyRotation") { () async throws(StoreFailure) in
            try await store.webhooks(sealedBy: key, skipping: stuck)
        }
        let changes = rows.compactMap { row in
            resealed(row.secrets, WebhookSecretSeal.associated(website: row.website), sealer).map {
                ReencryptedSecrets(website: row.website, old: row.secrets, new: $0, key: sealer.currentID)
            }
        }
        if !changes.isEmpty {
            try await withStore("keyRotation") { () async throws(StoreFailure) in try await store.reseal(changes) }
        }
        return (changes.count, rows.count - changes.count)
    }

    /// Returns the secret sealed under the current key; nil if it cannot be opened.
    private func resealed(_ old: [UInt8], _ associated: [UInt8], _ sealer: Sealer) -> [UInt8]? {
        guard let secret = try? sealer.open(old, associated: associated) else { return nil }
        return try? sealer.seal(secret, associated: associated, randomness: randomness)
    }

    func resealSome(
        of key: String, to sealer: Sealer, skipping stuck: Int
    ) async throws(Refusal) -> (done: Int, failed: Int) {
        let rows = try await withStore("keyRotation") { () async throws(StoreFailure) in
            try await store.factors(sealedBy: key, skipping: stuck)
        }
        var changes: [ResealedFactor] = []
        for row in rows {
            let associated = FactorSeal.associated(website: row.website, user: row.user, kind: row.kind, row: row.id)
            guard let sealed = resealed(row.secret, associated, sealer) else { continue }
            changes.append(ResealedFactor(id: row.id, old: row.secret, new: sealed, key: sealer.currentID))
        }
        if !changes.isEmpty {
            try await withStore("keyRotation") { () async throws(StoreFailure) in try await store.reseal(changes) }
        }
        return (changes.count, rows.count - changes.count)
    }
}
