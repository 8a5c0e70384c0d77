import Domain
import Log
import Synchronization
import World

/// The store operations of the change feed. They read the audit by its key, so the cost does not
/// grow with the number of held requests.
public protocol ChangeStore: Sendable {
    /// The number of the newest change; 0 if there is none.
    func newestChange() async throws(StoreFailure) -> Int64
    /// The visible changes after that number, in the order of their numbers.
    func changes(after number: Int64, limit: Int) async throws(StoreFailure) -> [StoreChange]
    /// The number of visible changes after `first` and up to `last`.
    func countChanges(after first: Int64, upTo last: Int64) async throws(StoreFailure) -> Int
}

/// An audit row, with the columns that held requests need.
public struct StoreChange: Sendable, Equatable {
    public let number: Int64
    public let event: String
    public let outcome: String?
    public let user: UserID?
    public let challenge: ChallengeID?
    public let device: DeviceID?
    public let website: WebsiteID?

    public init(
        number: Int64, event: String, outcome: String? = nil, user: UserID? = nil, challenge: ChallengeID? = nil,
        device: DeviceID? = nil, website: WebsiteID? = nil
    ) {
        self.website = website
        self.number = number
        self.event = event
        self.outcome = outcome
        self.user = user
        self.challenge = challenge
        self.device = device
    }
}

/// The position up to which the changes were read.
///
/// A number is drawn when its row is written, but the row is visible only after the commit. So a
/// lower number may become visible after a higher one. This usually takes a moment, so each look
/// reads again what the previous look found. In addition, once a second, the cursor counts the
/// changes of the last seconds. If there are more than it has read, it reads all of them again.
struct ChangeCursor: Sendable {
    /// The longest time that a transaction takes. Numbers that are newer than this are in doubt.
    static let longestTransaction = Duration.seconds(10)
    /// The most of the time between two sweeps that counts. If more time passed, the relay or the
    /// store was halted, and a transaction that waited as long is not over yet.
    static let longestStep = Duration.seconds(2)
    /// The time between two counts.
    static let sweep = Duration.seconds(1)
    /// The numbers before the newest that are in doubt at the first read. A transaction that began
    /// before has one of them.
    static let begun: Int64 = 1000

    /// The highest known number; nil before the first read.
    private(set) var newest: Int64?
    /// The highest known number at the look before.
    private(set) var before: Int64 = 0
    /// The time that counted so far, and when it was last increased.
    private var counted = Duration.zero
    private var lastSweep: Instant?
    /// The highest number at each sweep, the oldest first. Up to the first of them, no number is in
    /// doubt.
    private var known: [(at: Duration, newest: Int64)] = []
    /// The numbers that were read among those in doubt.
    private var read: Set<Int64> = []

    /// The last number that is not in doubt.
    var settled: Int64 { known.first?.newest ?? 0 }
    var countOfRead: Int { read.count }

    func isDue(at now: Instant) -> Bool {
        guard let lastSweep else { return true }
        return now - lastSweep >= Self.sweep
    }

    /// Records a number; returns whether it is new.
    mutating func record(_ number: Int64) -> Bool {
        newest = max(newest ?? 0, number)
        return number > settled && read.insert(number).inserted
    }

    /// Records that a look is complete. The next one begins at this number.
    mutating func looked(from newest: Int64) { before = newest }

    /// Moves to the newest number at this moment without reading the changes before it.
    mutating func skip(to number: Int64, at now: Instant) {
        let begun = max(0, number - Self.begun)
        if newest == nil { known.append((counted, begun)) }
        before = min(newest ?? begun, number)
        newest = number
        swept(at: now)
    }

    /// Records that all changes were read that were visible at this moment.
    mutating func swept(at now: Instant) {
        counted += min(lastSweep.map { now - $0 } ?? .zero, Self.longestStep)
        lastSweep = now
        known.append((counted, newest ?? 0))
        while known.count > 1, counted - known[1].at >= Self.longestTransaction { known.removeFirst() }
        let settled = settled
        read = read.filter { $0 > settled }
    }

    /// Replaces the set of read numbers by the complete list of those in doubt.
    mutating func replaceRead(_ numbers: Set<Int64>) { read = numbers }
}

/// The change feed of a relay: it reads the new audit rows and wakes the held requests that wait
/// for them.
///
/// A held request waits on one relay, but its event may be written by another relay or by an
/// operator's tool. Each change has an audit row that is committed with it. Every 50 ms each relay
/// reads the new rows, in one query for all its held requests. Without held requests it only moves
/// its position, once a second.
///
/// Invariant: a change that is visible in the store wakes its held requests, even if its number
/// becomes visible after a higher one (`ChangeCursor`).
///
/// Failures: the store does not answer. The position then stays the same, and the next look finds
/// the same changes. Until then, held requests are answered when their time is over. A request may
/// also be woken without news, for example by a change of the same relay. It reads the store and is
/// held again.
///
/// Tests: `RelayTests/ChangeFeedTests.swift` (the cursor) and `ChangeFeedWakeTests.swift` (waking
/// between relays).
final class ChangeFeed: Sendable {
    /// The largest number of changes in one answer of the store.
    static let page = 1000

    private let marks = Mutex(ChangeCursor())
    let failure = FailureState()

    /// Reads the new changes if a request waits for them. Otherwise it only moves the position, so
    /// that little is left to read later.
    ///
    /// After a failure the position is the same as before, and the next look finds the same
    /// changes.
    func look(
        _ store: any ChangeStore, isAwaited: Bool, at now: Instant, found: (StoreChange) -> Void
    ) async throws(StoreFailure) {
        let (newest, before, isDue) = marks.withLock { ($0.newest, $0.before, $0.isDue(at: now)) }
        guard let newest, isAwaited else {
            guard isDue else { return }
            let newest = try await store.newestChange()
            return marks.withLock { $0.skip(to: newest, at: now) }
        }
        _ = try await read(store, after: before, found: found)
        marks.withLock { $0.looked(from: newest) }
        guard isDue else { return }
        let (settled, last, count) = marks.withLock { ($0.settled, $0.newest ?? 0, $0.countOfRead) }
        if try await store.countChanges(after: settled, upTo: last) != count {
            let all = try await read(store, after: settled, found: found)
            marks.withLock { $0.replaceRead(all) }
        }
        marks.withLock { $0.swept(at: now) }
    }

    /// Reads all changes after that number.
    private func read(
        _ store: any ChangeStore, after number: Int64, found: (StoreChange) -> Void
    ) async throws(StoreFailure) -> Set<Int64> {
        var all: Set<Int64> = []
        var last = number
        while true {
            let changes = try await store.changes(after: last, limit: Self.page)
            for change in changes {
                all.insert(change.number)
                if marks.withLock({ $0.record(change.number) }) { found(change) }
            }
            last = changes.last?.number ?? last
            if changes.count < Self.page { return all }
        }
    }
}

extension Relay {
    /// Reads the change feed. The daemon's timer calls this twenty times a second, so a change by
    /// another relay is reported within that time.
    public func watch() async {
        do throws(StoreFailure) {
            try await changeFeed.look(store, isAwaited: !heldRequests.isEmpty, at: time.instant()) { wake($0) }
            if changeFeed.failure.changes(to: false) { log.notice("watch.recovered") }
        } catch {
            // Held requests are answered when their time is over.
            guard changeFeed.failure.changes(to: true) else { return }
            log.warning("watch.failing", [.reason: error.reason])
        }
    }

    /// Fires the same events as the verb that made the change. A change by this relay fires twice.
    /// The woken request then reads the store, and is held again if there is no news.
    private func wake(_ change: StoreChange) {
        switch change.event {
        case "challenge.asked":
            // A login that failed at once is no news for a phone.
            guard let user = change.user, let challenge = change.challenge,
                change.outcome.flatMap({ Reason(rawValue: $0) }) == nil
            else { return }
            heldRequests.fire(.user(user), besides: .challenge(challenge))
        case "challenge.answered", "challenge.cancelled", "challenge.expired", "challenge.ended":
            if let challenge = change.challenge { heldRequests.fire(.challenge(challenge)) }
        case "user.forgotten":
            if let challenge = change.challenge { heldRequests.fire(.challenge(challenge)) }
            if let user = change.user { heldRequests.fire(.user(user)) }
        case "device.unbound", "device.suspended", "device.withdrawn":
            if let device = change.device { heldRequests.fire(.phone(device)) }
        default: break
        }
    }
}
