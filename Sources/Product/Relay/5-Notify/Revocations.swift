import Domain
import Log
import Synchronization
import World

/// An identity whose connections must end because its certificate or key was revoked.
public enum RevokedIdentity: Sendable, Equatable {
    /// The website of that name. Connections with one of these keys stay, because the keys are
    /// still valid.
    case website(name: String, keys: [[UInt8]])
    case phone(DeviceID)
}

/// A website's name, and the keys with which it may call now. There are none while it is disabled.
public struct WebsiteKeys: Sendable, Equatable {
    public let name: String
    public let keys: [[UInt8]]

    public init(name: String, keys: [[UInt8]]) {
        self.name = name
        self.keys = keys
    }
}

/// A key that its website may not use any more from a set time on.
public struct EndedKey: Sendable, Hashable {
    public let thumbprint: [UInt8]
    public let website: WebsiteID

    public init(thumbprint: [UInt8], of website: WebsiteID) {
        self.thumbprint = thumbprint
        self.website = website
    }
}

public protocol RevocationStore: Sendable {
    /// The changes after that audit number that revoke a certificate, key or device.
    func revocations(after number: Int64) async throws(StoreFailure) -> [StoreChange]
    func keys(of website: WebsiteID, at now: Timestamp) async throws(StoreFailure) -> WebsiteKeys?
    /// The keys whose end has come after `start`, as `website renew --end` has set it.
    func endedKeys(after start: Timestamp, until now: Timestamp) async throws(StoreFailure) -> [EndedKey]
}

/// The position up to which the audit was read for revocations.
///
/// A number is drawn when its row is written, but the row is visible only after the commit. So a
/// lower number may become visible after a higher one. Therefore each look begins at the end of the
/// audit some seconds ago, and the cursor remembers what it has found since. `ChangeCursor` solves
/// the same problem for held requests. This cursor reads even if no request is held: revocations
/// are rare, and only they are fetched.
struct RevocationCursor: Sendable {
    /// The ends of the audit with the monotonic time at which they were read, the oldest first.
    private var ends: [(at: Duration, number: Int64)] = []
    private var counted = Duration.zero
    private var lastLook: Instant?
    private var found: Set<Int64> = []

    /// The position at which the next look begins; nil before the first look.
    var start: Int64? { ends.first?.number }

    /// Records a number; returns whether it is new.
    mutating func isNew(_ number: Int64) -> Bool { found.insert(number).inserted }

    mutating func looked(to end: Int64, at now: Instant) {
        counted += min(lastLook.map { now - $0 } ?? .zero, ChangeCursor.longestStep)
        lastLook = now
        ends.append((counted, ends.isEmpty ? max(0, end - ChangeCursor.begun) : end))
        while ends.count > 1, counted - ends[1].at >= ChangeCursor.longestTransaction { ends.removeFirst() }
        let start = ends[0].number
        found = found.filter { $0 > start }
    }
}

/// The revocations that were found, until their connections have ended.
final class Revocations: Sendable {
    private struct State {
        var marks = RevocationCursor()
        /// The websites with a revocation whose keys were not read since.
        var websites: Set<WebsiteID> = []
        /// The time of the last look for keys that have ended, and those that it found.
        var ends: (lookedAt: Timestamp, found: Set<EndedKey>)?
        var observer: (@Sendable (RevokedIdentity) -> Void)?
    }

    private let state = Mutex(State())
    let failure = FailureState()

    func observe(_ observer: @escaping @Sendable (RevokedIdentity) -> Void) {
        state.withLock { $0.observer = observer }
    }

    var start: Int64? { state.withLock { $0.marks.start } }
    var websites: [WebsiteID] { state.withLock { Array($0.websites) } }

    func notify(_ revoked: RevokedIdentity) { state.withLock { $0.observer }?(revoked) }

    /// Records the new revocations and returns the phones among them. The websites are kept until
    /// `settled`.
    func record(_ changes: [StoreChange], upTo end: Int64, at now: Instant) -> [DeviceID] {
        state.withLock { state in
            var phones: [DeviceID] = []
            for change in changes where state.marks.isNew(change.number) {
                if let device = change.device {
                    phones.append(device)
                } else if let website = change.website {
                    state.websites.insert(website)
                }
            }
            state.marks.looked(to: end, at: now)
            return phones
        }
    }

    /// The time from which on keys have ended that may not have been found. The clock of the operator
    /// may be late, and so may the change.
    func startOfEnds(at now: Timestamp) -> Timestamp {
        (state.withLock { $0.ends?.lookedAt } ?? now) - Self.endOverlap
    }

    /// Records the keys that have ended. The websites of those that are new are kept until `settled`.
    func record(_ ended: [EndedKey], at now: Timestamp) {
        state.withLock { state in
            let found = Set(ended)
            for key in found.subtracting(state.ends?.found ?? []) { state.websites.insert(key.website) }
            state.ends = (now, found)
        }
    }

    private static let endOverlap = Duration.seconds(60)

    func settled(_ website: WebsiteID) { state.withLock { _ = $0.websites.remove(website) } }
}

extension Relay {
    /// Registers the observer that ends the connections of a revoked identity.
    public func onRevocation(_ observer: @escaping @Sendable (RevokedIdentity) -> Void) {
        revocations.observe(observer)
    }

    /// Finds new revocations and keys that have ended, and ends the connections of the revoked identities, also if another
    /// relay or an operator made the change. The daemon's timer calls this once a second, and once
    /// before the relay listens. New requests are refused at once in any case, because each request
    /// looks up its caller.
    public func watchRevocations() async {
        do throws(StoreFailure) {
            let end = try await store.newestChange()
            var changes: [StoreChange] = []
            if let start = revocations.start { changes = try await store.revocations(after: start) }
            for phone in revocations.record(changes, upTo: end, at: time.instant()) {
                revocations.notify(.phone(phone))
            }
            let now = time.now()
            let ended = try await store.endedKeys(after: revocations.startOfEnds(at: now), until: now)
            revocations.record(ended, at: now)
            for website in revocations.websites {
                if let keys = try await store.keys(of: website, at: now) {
                    revocations.notify(.website(name: keys.name, keys: keys.keys))
                }
                revocations.settled(website)
            }
            if revocations.failure.changes(to: false) { log.notice("revocations.recovered") }
        } catch {
            guard revocations.failure.changes(to: true) else { return }
            log.warning("revocations.failing", [.reason: error.reason])
        }
    }
}
