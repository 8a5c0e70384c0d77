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
/// request would cost more than the request, so each key is written once a minute at most. All
/// relays write the keys in the same order, so that none waits for another one in a circle.
final class UsedWebsiteKeys: Sendable {
    private struct State {
        /// The last use of each key that is not written.
        var uses: [[UInt8]: Timestamp] = [:]
        /// When each key was written last.
        var written: [[UInt8]: Timestamp] = [:]
    }

    private static let pause = Duration.seconds(60)
    private let state = Mutex(State())

    func record(_ key: [UInt8], at now: Timestamp) { state.withLock { $0.uses[key] = now } }

    /// Returns the uses that are due, ordered by key. The others stay.
    func taken(at now: Timestamp) -> [WebsiteKeyUse] {
        state.withLock { state in
            // A clock that was set back delays nothing.
            state.written = state.written.filter { (Duration.zero..<Self.pause).contains(now - $0.value) }
            let due = state.uses.filter { state.written[$0.key] == nil }
            for key in due.keys {
                state.uses[key] = nil
                state.written[key] = now
            }
            return due.map { WebsiteKeyUse(thumbprint: $0.key, at: $0.value) }
                .sorted { $0.thumbprint.lexicographicallyPrecedes($1.thumbprint) }
        }
    }

    /// Takes back uses that could not be written. A later use of the same key stays.
    func restore(_ taken: [WebsiteKeyUse]) {
        state.withLock { state in
            for use in taken {
                state.written[use.thumbprint] = nil
                if state.uses[use.thumbprint] == nil { state.uses[use.thumbprint] = use.at }
            }
        }
    }
}

extension Relay {
    /// Writes which keys of websites were used. The daemon's timer calls this every five seconds.
    public func recordWebsiteKeyUse() async {
        let uses = usedWebsiteKeys.taken(at: time.now())
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
