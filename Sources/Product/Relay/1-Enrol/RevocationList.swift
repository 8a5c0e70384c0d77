import Crypto
import Domain
import Log
import Synchronization
import World

/// The revocation list of the phones' authority: what `GET /crl` returns.
public struct RevocationList: Sendable, Equatable {
    /// The list in DER.
    public let der: [UInt8]
    public let nextUpdate: Timestamp

    /// The time for which a list is valid.
    public static let life = Duration.seconds(86_400)
    /// The time after which a list is made again although nothing has changed.
    static let renewal = Duration.seconds(3600)
    /// The least time between two looks into the store.
    static let interval = Duration.seconds(10)
    /// The time for which a look that has failed is not repeated.
    static let pause = Duration.seconds(1)
    /// The most certificates of one list. It then has less than four megabytes. If more are
    /// revoked, those of disabled websites, those of stopped users, and those that were revoked
    /// first are left out, in this order: the others still protect.
    public static let mostEntries = 65_536
}

/// The newest revocation list of this relay.
///
/// Purpose: anybody may ask for the list, so its cost must not depend on how often. The store is
/// read once in `RevocationList.interval`, and a list is signed once for each change, and once an
/// hour.
///
/// Invariant: one request at a time makes a list. Others wait for it, so that each gets a list that
/// is at most the interval old. If the look fails, all of them get the last list.
final class RevocationListCache: Sendable {
    enum Step: Sendable {
        case serve(RevocationList)
        /// The caller looks into the store, and calls `end`.
        case look(Made?)
        /// The caller calls `ended`, and then asks again.
        case wait
        /// The last look has just failed.
        case failed(Made?)
    }

    struct Made: Sendable {
        let list: RevocationList
        let revoked: RevokedCertificates
        let at: Instant
        /// Whether the list must be made anew, although it serves if that fails.
        var isStale = false
    }

    private struct State {
        var made: Made?
        var lookedAt: Instant?
        /// When the last look failed; nil if it did not.
        var failedAt: Instant?
        var isLooking = false
        /// Whether the issuer was replaced while a request looked.
        var isReplaced = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    func begin(at now: Instant) -> Step {
        state.withLock { state in
            if state.isLooking { return .wait }
            if let made = state.made, let lookedAt = state.lookedAt, now - lookedAt < RevocationList.interval {
                return .serve(made.list)
            }
            if let failedAt = state.failedAt, now - failedAt < RevocationList.pause { return .failed(state.made) }
            state.isLooking = true
            return .look(state.made)
        }
    }

    /// Lets the next request make a list, because the issuer was replaced.
    func issuerReplaced() {
        state.withLock { state in
            state.made?.isStale = true
            state.lookedAt = nil
            state.isReplaced = state.isLooking
        }
    }

    /// Waits until the request that looks has ended.
    func ended() async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if state.isLooking { state.waiting.append(continuation) }
                return !state.isLooking
            }
            if isOver { continuation.resume() }
        }
    }

    /// - Parameter made: the current list; nil if the look has failed.
    func end(_ made: Made?, at now: Instant) {
        let waiting = state.withLock { state in
            state.isLooking = false
            state.failedAt = made == nil ? now : nil
            if var made {
                made.isStale = state.isReplaced
                state.made = made
                state.lookedAt = state.isReplaced ? nil : now
            }
            state.isReplaced = false
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }
}

extension Relay {
    /// Returns the revocation list of the phones' authority. If the store or the authority does not
    /// answer, it is the last one, as long as that is valid.
    public func revocationList() async throws(Refusal) -> RevocationList {
        // An authority outside of the installation publishes its own list.
        guard !phones.isOutside else { throw .notFound }
        while true {
            switch revocationLists.begin(at: time.instant()) {
            case .serve(let list): return list
            // Whoever waited asks again at once, and finds what the look has found.
            case .wait: await revocationLists.ended()
            case .failed(let last): return try valid(last)
            case .look(let last):
                let found = await currentList(after: last)
                revocationLists.end(found, at: time.instant())
                return try valid(found ?? last)
            }
        }
    }

    private func valid(_ made: RevocationListCache.Made?) throws(Refusal) -> RevocationList {
        guard let list = made?.list, time.now() < list.nextUpdate else { throw .unavailable }
        return list
    }

    /// Reads which certificates are revoked. Makes a list unless the last one still says so and is
    /// young. Returns nil after a failure, which is logged.
    private func currentList(after last: RevocationListCache.Made?) async -> RevocationListCache.Made? {
        let now = time.now()
        let most = RevocationList.mostEntries
        let read = try? await withStore("crl") { () async throws(StoreFailure) in
            try await store.revokedCertificates(at: now, limit: most + 1)
        }
        guard let read else { return nil }
        var revoked = read
        revoked.certificates = read.certificates.suffix(most)
        if let last, !last.isStale, last.revoked == revoked, time.instant() - last.at < RevocationList.renewal {
            return last
        }
        // The rows that are no entries use places of the limit.
        if read.certificates.count + read.malformed.count > most {
            log.error(
                "crl.shortened",
                [.error: "more than \(most) certificates are revoked and have not expired: the oldest are left out"])
        }
        if let first = read.malformed.first {
            log.error("crl.skipped", [.count: read.malformed.count, .serial: String(first.prefix(40))])
        }
        do throws(CertificateFailure) {
            let der = try await phones.revocationList(revoked.certificates, at: now)
            log.info("crl.made", [.count: revoked.certificates.count])
            return RevocationListCache.Made(
                list: RevocationList(der: der, nextUpdate: now + RevocationList.life), revoked: revoked,
                at: time.instant())
        } catch {
            switch error {
            case .unavailable(let reason): log.warning("crl.failed", [.reason: reason])
            case .failed(let reason): log.error("crl.failed", [.error: reason])
            case .later(let reason, _): log.warning("crl.failed", [.reason: reason])
            case .absent: break
            }
            return nil
        }
    }
}
