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

/// The last request that a website authenticated with a certificate of a key.
public struct WebsiteKeyUse: Sendable, Equatable {
    public let thumbprint: [UInt8]
    /// The certificate; nil if it is unknown.
    public let certificate: WebsiteCertificate?
    public let at: Timestamp

    public init(thumbprint: [UInt8], certificate: WebsiteCertificate? = nil, at time: Timestamp) {
        self.thumbprint = thumbprint
        self.certificate = certificate
        at = time
    }

    /// Identifies the certificate among all.
    fileprivate struct ID: Hashable, Comparable {
        let thumbprint: [UInt8]
        let serial: String

        static func < (a: ID, b: ID) -> Bool {
            a.thumbprint == b.thumbprint ? a.serial < b.serial : a.thumbprint.lexicographicallyPrecedes(b.thumbprint)
        }
    }

    fileprivate var id: ID { ID(thumbprint: thumbprint, serial: certificate?.serial ?? "") }
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

/// The certificates with which websites have authenticated since the last write to the store.
///
/// Purpose: an operator who renews a certificate sees which key the website uses. A write for each
/// request would cost more than the request, so each one is written once a minute at most. All
/// relays write the keys in the same order, so that none waits for another one in a circle.
final class UsedWebsiteKeys: Sendable {
    private struct State {
        /// The last use of each certificate that is not written.
        var uses: [WebsiteKeyUse.ID: WebsiteKeyUse] = [:]
        /// When the use of each certificate was written last.
        var written: [WebsiteKeyUse.ID: Timestamp] = [:]
    }

    private static let pause = Duration.seconds(60)
    private let state = Mutex(State())

    func record(_ use: WebsiteKeyUse) { state.withLock { $0.uses[use.id] = use } }

    /// Returns the uses that are due, ordered by key. The others stay.
    func taken(at now: Timestamp) -> [WebsiteKeyUse] {
        state.withLock { state in
            // A clock that was set back delays nothing.
            state.written = state.written.filter { (Duration.zero..<Self.pause).contains(now - $0.value) }
            let due = state.uses.filter { state.written[$0.key] == nil }
            for id in due.keys {
                state.uses[id] = nil
                state.written[id] = now
            }
            return due.sorted { $0.key < $1.key }.map(\.value)
        }
    }

    /// Takes back uses that could not be written. A later use of the same key stays.
    func restore(_ taken: [WebsiteKeyUse]) {
        state.withLock { state in
            for use in taken {
                state.written[use.id] = nil
                if state.uses[use.id] == nil { state.uses[use.id] = use }
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
