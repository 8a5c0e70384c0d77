import Domain
import Log
import Synchronization
import World

/// The store port for the keys of websites: which of them are used, and when their certificates
/// expire.
public protocol WebsiteKeyStore: Sendable {
    /// Records the last request with each key.
    func record(_ uses: [WebsiteKeyUse]) async throws(StoreFailure)
    /// Returns the active websites whose certificates are known, the one that expires first before
    /// the others.
    func websiteExpiries(at: Timestamp) async throws(StoreFailure) -> [WebsiteExpiry]
}

/// The last request that a website authenticated with a key.
public struct WebsiteKeyUse: Sendable, Equatable {
    public let thumbprint: [UInt8]
    public let at: Timestamp

    public init(thumbprint: [UInt8], at time: Timestamp) {
        self.thumbprint = thumbprint
        at = time
    }
}

/// The time from which a website has no valid certificate, unless it is renewed.
public struct WebsiteExpiry: Sendable, Equatable {
    public let website: String
    /// The end of the certificate that is valid longest.
    public let expiresAt: Timestamp

    public init(website: String, expiresAt: Timestamp) {
        self.website = website
        self.expiresAt = expiresAt
    }
}

/// The keys with which websites have authenticated since the last write to the store.
///
/// Purpose: an operator who renews a certificate sees which key the website uses. A write for each
/// request would cost more than the request, so each key is written every few seconds at most.
final class UsedWebsiteKeys: Sendable {
    private let uses = Mutex<[[UInt8]: Timestamp]>([:])

    func record(_ key: [UInt8], at now: Timestamp) { uses.withLock { $0[key] = now } }

    /// Returns the uses since the last call.
    func taken() -> [WebsiteKeyUse] {
        uses.withLock { uses in
            defer { uses.removeAll(keepingCapacity: true) }
            return uses.map { WebsiteKeyUse(thumbprint: $0.key, at: $0.value) }
        }
    }

    /// Takes back uses that could not be written. A later use of the same key stays.
    func restore(_ taken: [WebsiteKeyUse]) {
        uses.withLock { uses in
            for use in taken where uses[use.thumbprint] == nil { uses[use.thumbprint] = use.at }
        }
    }
}

extension Relay {
    /// Writes which keys of websites were used. The daemon's timer calls this every five seconds.
    public func recordWebsiteKeyUse() async {
        let uses = usedWebsiteKeys.taken()
        guard !uses.isEmpty else { return }
        do throws(StoreFailure) {
            try await store.record(uses)
        } catch {
            usedWebsiteKeys.restore(uses)
            log.warning("website.use", [.reason: error.reason])
        }
    }

    /// Returns when the certificates of the websites expire; nil if the store cannot be read.
    public func websiteExpiries() async -> [WebsiteExpiry]? {
        do throws(StoreFailure) {
            return try await store.websiteExpiries(at: time.now())
        } catch {
            return nil
        }
    }
}
