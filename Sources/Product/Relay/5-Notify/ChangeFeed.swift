import Domain
import Log
import Synchronization
import World

/// Tell, from elsewhere: what another relay or an operator's tool wrote wakes who waits here. The audit says what
/// happened, was committed with it, and is read by its key: what that costs does not grow with the number of waits.
public protocol ChangeStore: Sendable {
    /// The number of the newest change; 0 where nothing has changed yet.
    func newestChange() async throws(StoreFailure) -> Int64
    /// The changes beyond that number that can be seen by now, in the order of their numbers.
    func changes(after number: Int64, limit: Int) async throws(StoreFailure) -> [StoreChange]
    /// How many can be seen by now, beyond the first number and up to the last.
    func countChanges(after first: Int64, upTo last: Int64) async throws(StoreFailure) -> Int
}

/// A row of the audit, as far as it concerns who waits.
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

/// How far the changes were read.
///
/// A number is drawn when its row is written, and seen when that is committed: a lower one may come after a higher one.
/// Mostly it is a moment later, so each look reads again what the one before found. And all that is newer than some
/// seconds is counted once a second, and read again where more is there than was read.
struct ChangeCursor: Sendable {
    /// No transaction takes longer.
    static let doubt = Duration.seconds(10)
    /// What counts of the time between two countings. Where it was more, we were halted or the store was: a transaction
    /// that waited as long as that is not over yet.
    static let longestStep = Duration.seconds(2)
    /// How often it is counted.
    static let sweep = Duration.seconds(1)
    /// Before the first reading nothing is known: what was begun by then has one of the numbers before the newest.
    static let begun: Int64 = 1000

    /// The highest number known; nil before the first reading.
    private(set) var newest: Int64?
    /// And at the look before.
    private(set) var before: Int64 = 0
    /// The time that counted so far, and when it was last added to.
    private var counted = Duration.zero
    private var lastSweep: Instant?
    /// Which number was the highest when, the oldest first; the first moment is the last one beyond doubt.
    private var known: [(at: Duration, newest: Int64)] = []
    /// What was read of the numbers that are in doubt.
    private var read: Set<Int64> = []

    /// What is beyond it is in doubt.
    var settled: Int64 { known.first?.newest ?? 0 }
    var countOfRead: Int { read.count }

    func isDue(at now: Instant) -> Bool {
        guard let lastSweep else { return true }
        return now - lastSweep >= Self.sweep
    }

    /// Whether it was new.
    mutating func record(_ number: Int64) -> Bool {
        newest = max(newest ?? 0, number)
        return number > settled && read.insert(number).inserted
    }

    /// What begins now is the look before the next one.
    mutating func looked(from newest: Int64) { before = newest }

    /// That was the highest at that moment, and what lies between is not read.
    mutating func skip(to number: Int64, at now: Instant) {
        let begun = max(0, number - Self.begun)
        if newest == nil { known.append((counted, begun)) }
        before = min(newest ?? begun, number)
        newest = number
        swept(at: now)
    }

    /// All is read that could be seen at that moment.
    mutating func swept(at now: Instant) {
        counted += min(lastSweep.map { now - $0 } ?? .zero, Self.longestStep)
        lastSweep = now
        known.append((counted, newest ?? 0))
        while known.count > 1, counted - known[1].at >= Self.doubt { known.removeFirst() }
        let settled = settled
        read = read.filter { $0 > settled }
    }

    /// These are all there are of those in doubt, whatever was thought before.
    mutating func replaceRead(_ numbers: Set<Int64>) { read = numbers }
}

/// The eye on the changes: one a relay. It remembers between two looks how far it read.
final class ChangeFeed: Sendable {
    /// Changes in one answer of the store.
    static let page = 1000

    private let marks = Mutex(ChangeCursor())
    let failure = FailureState()

    /// Reads what is new, if anybody waits for it; else it only sees to it that there is little to read once somebody does.
    ///
    /// After a failure all is as it was: the next look finds what this one did not.
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

    /// All beyond that number.
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
    /// Called by the daemon's timer twenty times a second: so an end that was recorded elsewhere is told within that time.
    public func watch() async {
        do throws(StoreFailure) {
            try await changeFeed.look(store, isAwaited: !heldRequests.isEmpty, at: time.instant()) { wake($0) }
            if changeFeed.failure.changes(to: false) { log.notice("watch.recovered") }
        } catch {
            // Whoever waits is told when its own time is over.
            guard changeFeed.failure.changes(to: true) else { return }
            log.warning("watch.failing", [.reason: error.reason])
        }
    }

    /// Wakes as the verb does that made the change. A change of this relay's own wakes twice: whoever waits by
    /// then looks, and is held again where it is no news.
    private func wake(_ change: StoreChange) {
        switch change.event {
        case "challenge.asked":
            // One that failed at once is no news for a phone.
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
