import Synchronization
import World

/// Limits how many requests of one website are in work at the same time while other websites call.
/// Further requests wait here, in the order in which they came.
///
/// A request passes through its loop and the store about ten times, and each time it waits for the
/// work that is queued before it. The store's queue is fair between websites, but a loop takes work
/// in the order in which it comes. If one website has hundreds of requests in work, every request of
/// another website waits for hundreds of pieces of work at each step. With this limit it waits for a
/// few. A website that is alone has no limit, because requests that are in work together share
/// commits.
///
/// A website is known by the key of its certificate before the store is asked. Requests of phones
/// are not limited here: each phone has a quota.
public final class WebsiteConcurrencyLimit: Sendable {
    /// Requests of one website in work while others call. `docs/internals/decisions.md` says what it costs.
    public static let limit = 4
    /// How long after a call of another website the limit holds: as long as a login usually takes.
    public static let memory = Duration.seconds(60)

    private typealias Turn = UnsafeContinuation<Void, Never>

    private struct Line {
        var working = 0
        /// The next to begin is the last.
        private var next: [Turn] = []
        private var newest: [Turn] = []

        mutating func append(_ turn: Turn) { newest.append(turn) }

        /// The turns that may begin now, which count as working from here on.
        mutating func begin(upTo limit: Int) -> [Turn] {
            var begun: [Turn] = []
            while working < limit, let turn = popFirst() {
                working += 1
                begun.append(turn)
            }
            return begun
        }

        private mutating func popFirst() -> Turn? {
            if next.isEmpty {
                next = newest.reversed()
                newest = []
            }
            return next.popLast()
        }
    }

    private struct State {
        var lines: [[UInt8]: Line] = [:]
        var latest: [UInt8]?
        /// The time of the last call that came from another website than the call before it.
        var sharedAt: Instant?

        func limit(at now: Instant) -> Int {
            guard let sharedAt, now - sharedAt < WebsiteConcurrencyLimit.memory else { return .max }
            return WebsiteConcurrencyLimit.limit
        }
    }

    private let time: any TimeSource
    private let state = Mutex(State())

    public init(time: any TimeSource) { self.time = time }

    /// Returns when the website may have one more request in work. Each call is followed by one of `end`.
    ///
    /// - Parameter website: the thumbprint of the key of its certificate.
    public func begin(_ website: [UInt8]) async {
        let now = time.instant()
        await withUnsafeContinuation { turn in
            let begun = state.withLock { state in
                if let latest = state.latest, latest != website { state.sharedAt = now }
                state.latest = website
                let limit = state.limit(at: now)
                state.lines[website, default: Line()].append(turn)
                return state.lines[website]?.begin(upTo: limit) ?? []
            }
            for turn in begun { turn.resume() }
        }
    }

    /// One of the website's requests is no longer in work.
    public func end(_ website: [UInt8]) {
        let now = time.instant()
        let begun: [Turn] = state.withLock { state in
            let limit = state.limit(at: now)
            state.lines[website]?.working -= 1
            let begun = state.lines[website]?.begin(upTo: limit) ?? []
            if state.lines[website]?.working == 0 { state.lines[website] = nil }
            return begun
        }
        for turn in begun { turn.resume() }
    }

    /// Websites that have requests in work.
    var websites: Int { state.withLock { $0.lines.count } }
}
