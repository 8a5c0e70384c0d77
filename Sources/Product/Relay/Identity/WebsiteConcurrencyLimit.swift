import Synchronization
import World

/// A limit on how many requests of one website are in work at the same time while other websites
/// call. Further requests wait here, in the order in which they came.
///
/// A request passes through its loop and the store about ten times, and each time it waits for the
/// work that is queued before it. The store's queue is fair between websites, but a loop takes work
/// in the order in which it comes. If one website has hundreds of requests in work, every request
/// of another website waits for hundreds of pieces of work at each step. With this limit it waits
/// for a few. A website that is alone has no limit, because requests that are in work together
/// share commits.
///
/// A request that only reads may need no step but one: it begins and ends within a turn of its loop,
/// and hundreds of them could follow one another in this turn. So while the limit holds, a request
/// counts as in work until the turn in which it ends is over.
///
/// Invariant: every call of `begin` is followed by exactly one call of `end`, even if the request
/// fails. If a call of `end` were missing, the website would have one place less for ever.
///
/// A website is known by the key of its certificate before the store is queried. Requests of phones
/// are not limited here: each phone has a quota.
///
/// Tested in `WebsiteConcurrencyLimitTests.swift`.
public final class WebsiteConcurrencyLimit: Sendable {
    /// The most requests of one website in work while others call. `docs/internals/decisions.md`
    /// explains the cost.
    public static let limit = 4
    /// The time that the limit holds after a call of another website: about as long as a login
    /// takes.
    public static let memory = Duration.seconds(60)

    private typealias Turn = UnsafeContinuation<Void, Never>

    /// The requests of one website that are in work, and the queue of those that wait. Guarded by
    /// `state`.
    private final class Line {
        var working = 0
        /// The front of the queue in reverse order: the last element is the next to begin.
        private var next: [Turn] = []
        private var newest: [Turn] = []

        func append(_ turn: Turn) { newest.append(turn) }

        /// Counts one more request as working. Returns false if it must wait.
        func begin(upTo limit: Int) -> Bool {
            guard working < limit, next.isEmpty, newest.isEmpty else { return false }
            working += 1
            return true
        }

        /// Removes the turns that may begin now, and counts them as working.
        func beginWaiting(upTo limit: Int) -> [Turn] {
            var begun: [Turn] = []
            while working < limit, let turn = popFirst() {
                working += 1
                begun.append(turn)
            }
            return begun
        }

        private func popFirst() -> Turn? {
            if next.isEmpty {
                next = newest.reversed()
                newest = []
            }
            return next.popLast()
        }
    }

    private struct State {
        var lines: [HashedBytes: Line] = [:]
        var latest: HashedBytes?
        /// The time of the last call that came from another website than the call before it.
        var sharedAt: Instant?

        func limit(at now: Instant) -> Int {
            guard let sharedAt, now - sharedAt < WebsiteConcurrencyLimit.memory else { return .max }
            return WebsiteConcurrencyLimit.limit
        }

        /// The line of a website that calls now.
        mutating func line(_ website: HashedBytes, at now: Instant) -> Line {
            if let latest, latest != website { sharedAt = now }
            latest = website
            if let line = lines[website] { return line }
            let line = Line()
            lines[website] = line
            return line
        }
    }

    /// Runs work at the end of the loop's turn.
    public typealias TurnEnd = @Sendable (@escaping @Sendable () -> Void) -> Void

    private let time: any TimeSource
    private let atTurnEnd: TurnEnd
    private let state = Mutex(State())

    public init(time: any TimeSource, atTurnEnd: @escaping TurnEnd) {
        self.time = time
        self.atTurnEnd = atTurnEnd
    }

    /// Returns when the website may have one more request in work. Each call is followed by one of
    /// `end`.
    ///
    /// - Parameter website: the thumbprint of the key of its certificate.
    public func begin(_ website: [UInt8]) async {
        let (website, now) = (HashedBytes(website), time.instant())
        // Nearly every request begins at once, and needs no continuation.
        let hasBegun = state.withLock { $0.line(website, at: now).begin(upTo: $0.limit(at: now)) }
        guard !hasBegun else { return }
        await withUnsafeContinuation { turn in
            let begun = state.withLock { state in
                let line = state.line(website, at: now)
                line.append(turn)
                return line.beginWaiting(upTo: state.limit(at: now))
            }
            for turn in begun { turn.resume() }
        }
    }

    /// Ends a request, and lets the next waiting ones of its website begin: in the next turn, while
    /// the limit holds.
    public func end(_ website: [UInt8]) {
        let (website, now) = (HashedBytes(website), time.instant())
        guard state.withLock({ $0.limit(at: now) }) != .max else { return finish(website, at: now) }
        atTurnEnd { self.finish(website, at: now) }
    }

    private func finish(_ website: HashedBytes, at now: Instant) {
        let begun: [Turn] = state.withLock { state in
            guard let line = state.lines[website] else { return [] }
            line.working -= 1
            let begun = line.beginWaiting(upTo: state.limit(at: now))
            if line.working == 0 { state.lines[website] = nil }
            return begun
        }
        for turn in begun { turn.resume() }
    }

    /// The number of websites that have requests in work.
    var websites: Int { state.withLock { $0.lines.count } }
}
