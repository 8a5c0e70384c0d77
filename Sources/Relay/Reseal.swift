import Bytes
import Crypto
import Domain
import Log

/// When the master key has changed, what is sealed under the old one is sealed anew, a few rows at a time, while everything
/// goes on.
public protocol ResealStore: Sendable {
    /// Some of the factors that are sealed under that key, without the first so many.
    func factors(sealedBy key: String, skipping: Int) async throws(StoreFailure) -> [SealedFactor]
    /// Each only where its secret is the old one still.
    func reseal(_ factors: [ResealedFactor]) async throws(StoreFailure)
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
            var (done, stuck) = (0, 0)
            // Rows that are done leave the set; those that do not open stay, and are passed over.
            while let (count, failed) = try? await resealSome(of: key, to: sealer, skipping: stuck) {
                done += count
                stuck += failed
                if count + failed == 0 || self.sealer.currentID != sealer.currentID { break }
            }
            if done > 0 { log.notice("factor.resealed", [.keyID: sealer.currentID, .count: done]) }
            if stuck > 0 { log.error("factor.stuck", [.keyID: key, .count: stuck]) }
        }
    }

    func resealSome(
        of key: String, to sealer: Sealer, skipping stuck: Int
    ) async throws(Refusal) -> (done: Int, failed: Int) {
        let rows = try await ask("reseal") { () async throws(StoreFailure) in
            try await store.factors(sealedBy: key, skipping: stuck)
        }
        var changes: [ResealedFactor] = []
        for row in rows {
            let associated = FactorSeal.associated(website: row.website, user: row.user, kind: row.kind, row: row.id)
            guard let secret = try? sealer.open(row.secret, associated: associated),
                let sealed = try? sealer.seal(secret, associated: associated, randomness: randomness)
            else { continue }
            changes.append(ResealedFactor(id: row.id, old: row.secret, new: sealed, key: sealer.currentID))
        }
        if !changes.isEmpty {
            try await ask("reseal") { () async throws(StoreFailure) in try await store.reseal(changes) }
        }
        return (changes.count, rows.count - changes.count)
    }
}
