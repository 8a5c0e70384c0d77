import World

/// The calls to one website that a relay has in hand: which of them leaves now, and what follows from what became of it. No
/// clock, no socket, no store: whoever owns it does what it says. Each website has its own, so that none waits for another.
///
/// A thread is what is told in order: the calls about one challenge. Of one thread, one is under way at most, and none before
/// those of lower rank have arrived or were given up. Calls without a thread go in the order they came.
public struct WebhookQueue<Call: Hashable & Sendable, Thread: Hashable & Sendable>: Sendable {
    public struct Entry: Sendable, Equatable {
        public let call: Call
        public let thread: Thread?
        /// Among the calls of its thread. It follows from what is told, not from a clock: relays have several.
        public let rank: Int
        /// The tries that failed so far.
        public let failures: Int

        public init(_ call: Call, thread: Thread? = nil, rank: Int = 0, failures: Int = 0) {
            self.call = call
            self.thread = thread
            self.rank = rank
            self.failures = failures
        }
    }

    /// What is to be written down. Whatever it names is no longer in hand.
    public enum Effect: Sendable, Equatable {
        case delivered(Call)
        /// Due again then, with so many failed tries.
        case again(Call, at: Timestamp, failures: Int)
        /// Nobody tries it any more, unless an operator says so.
        case dead(Call, failures: Int)
        /// It waits until an operator enables the website again.
        case shelved(Call, failures: Int)
        /// The website is not called any more. To be told once.
        case disabled(WebhookHealth.Reason)
        /// The website is back: all that waits for it is due now.
        case recovered
    }

    /// How many are under way to one website.
    public static var widest: Int { 4 }
    /// So long a website is left alone at most because one of its answers asked for it.
    public static var longestRest: Duration { .seconds(3600) }

    public private(set) var standing: WebhookHealth
    private let schedule: RetrySchedule
    private let widest: Int
    private var waiting: [Entry] = []
    private var underWay: [Call: Entry] = [:]
    /// Of these under way, those that left for what was before `renew`.
    private var former: Set<Call> = []
    private var restsUntil: Timestamp?
    /// It said that it has too much to do, and has taken nothing since.
    private var isBusy = false

    public init(
        _ standing: WebhookHealth = WebhookHealth(), schedule: RetrySchedule = .standard,
        widest: Int = WebhookQueue.widest
    ) {
        self.standing = standing
        self.schedule = schedule
        self.widest = max(widest, 1)
    }

    public var isEmpty: Bool { waiting.isEmpty && underWay.isEmpty }
    public var underWayCount: Int { underWay.count }

    /// How many more are worth taking from the store now.
    public func room(at now: Timestamp) -> Int { max(free(at: now) - waiting.count, 0) }

    private func free(at now: Timestamp) -> Int {
        if standing.isDisabled { return 0 }
        // Of a clock that was set back it is not waited for.
        if let restsUntil, now < restsUntil, restsUntil - now <= Self.longestRest { return 0 }
        return max((isBusy || standing.isDown ? 1 : widest) - underWay.count, 0)
    }

    /// When it is worth asking again though nothing ends until then; nil where it does not rest.
    public func restEnd(at now: Timestamp) -> Timestamp? {
        guard let restsUntil, now < restsUntil, restsUntil - now <= Self.longestRest else { return nil }
        return restsUntil
    }

    /// Nothing would be lost with it: how it stands with the website, the store knows.
    public func isIdle(at now: Timestamp) -> Bool { isEmpty && !isBusy && restEnd(at: now) == nil }

    /// Takes one in hand; false where it is already.
    @discardableResult
    public mutating func add(_ entry: Entry) -> Bool {
        guard underWay[entry.call] == nil, !waiting.contains(where: { $0.call == entry.call }) else { return false }
        waiting.append(entry)
        return true
    }

    /// The next that leaves now; to be asked until there is none.
    public mutating func next(at now: Timestamp) -> Entry? {
        guard free(at: now) > 0, let at = waiting.indices.first(where: mayLeave) else { return nil }
        let entry = waiting.remove(at: at)
        underWay[entry.call] = entry
        return entry
    }

    private func mayLeave(_ at: Int) -> Bool {
        let entry = waiting[at]
        guard let thread = entry.thread else { return true }
        return !underWay.values.contains { $0.thread == thread }
            && !waiting.contains { $0.thread == thread && $0.rank < entry.rank }
    }

    /// One that was under way has ended; of one that was not, nothing follows.
    ///
    /// - Parameter chance: from 0 up to 1.
    public mutating func end(
        _ call: Call, _ outcome: WebhookOutcome, at now: Timestamp, chance: Double
    ) -> [Effect] {
        guard let entry = underWay.removeValue(forKey: call) else { return [] }
        let meaning = outcome.meaning
        let isFormer = former.remove(call) != nil
        let change = isFormer ? nil : standing.note(meaning, at: now)
        var effects: [Effect]
        switch meaning {
        case .delivered:
            if !isFormer { isBusy = false }
            effects = [.delivered(call)]
        case .nothing:
            effects = putBack(
                entry, failures: entry.failures, at: now + RetrySchedule.spread(RetrySchedule.soon, chance))
        // Of what is called now, it was no try.
        case .gone where isFormer, .failed where isFormer: effects = putBack(entry, failures: entry.failures, at: now)
        case .gone: effects = [.shelved(call, failures: entry.failures)]
        case .failed(let isBusy, let wish):
            if isBusy { rest(wish, at: now) }
            let failures = entry.failures + 1
            let due = schedule.next(failures: failures, wish: wish, at: now, chance: chance)
            effects = due.map { putBack(entry, failures: failures, at: $0) } ?? [.dead(call, failures: failures)]
        }
        if standing.isDisabled { effects = effects.map(Self.shelf) + shelveAll() }
        switch change {
        case .disabled(let reason): effects.append(.disabled(reason))
        case .recovered: effects.append(.recovered)
        case nil: break
        }
        return effects
    }

    /// An operator has disabled or enabled it, or another relay has seen how it stands. What is under way comes to its end.
    public mutating func follow(_ standing: WebhookHealth) -> [Effect] {
        let wasDisabled = self.standing.isDisabled
        self.standing = standing
        if standing.isDisabled { return shelveAll() }
        if wasDisabled {
            isBusy = false
            restsUntil = nil
        }
        return []
    }

    /// It is called elsewhere, or an operator has had it begin anew. Nothing is held against it that was before, nor what
    /// becomes of that which is under way still.
    public mutating func renew() {
        (isBusy, restsUntil) = (false, nil)
        former = Set(underWay.keys)
    }

    /// The relay ends: what has not left goes back as it came. What is under way is not touched.
    public mutating func release(at now: Timestamp) -> [Effect] {
        defer { waiting = [] }
        return waiting.map { .again($0.call, at: now, failures: $0.failures) }
    }

    /// Those of its thread that come after it go with it, and are no sooner due.
    private mutating func putBack(_ entry: Entry, failures: Int, at due: Timestamp) -> [Effect] {
        var effects = [Effect.again(entry.call, at: due, failures: failures)]
        guard let thread = entry.thread else { return effects }
        for other in waiting where other.thread == thread {
            effects.append(.again(other.call, at: due, failures: other.failures))
        }
        waiting.removeAll { $0.thread == thread }
        return effects
    }

    private mutating func shelveAll() -> [Effect] {
        defer { waiting = [] }
        return waiting.map { .shelved($0.call, failures: $0.failures) }
    }

    private static func shelf(_ effect: Effect) -> Effect {
        if case .again(let call, _, let failures) = effect { .shelved(call, failures: failures) } else { effect }
    }

    private mutating func rest(_ wish: Duration?, at now: Timestamp) {
        isBusy = true
        guard let wish, wish > .zero else { return }
        let until = now + min(wish, Self.longestRest)
        restsUntil = max(restEnd(at: now) ?? until, until)
    }
}
