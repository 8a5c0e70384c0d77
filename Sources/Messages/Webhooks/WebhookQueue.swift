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
        public let ordinal: Int
        /// The tries that failed so far.
        public let failures: Int

        public init(_ call: Call, thread: Thread? = nil, ordinal: Int = 0, failures: Int = 0) {
            self.call = call
            self.thread = thread
            self.ordinal = ordinal
            self.failures = failures
        }
    }

    /// What is to be written down. Whatever it names is no longer in hand.
    public enum Effect: Sendable, Equatable {
        case delivered(Call)
        /// Due again then, with so many failed tries.
        case retry(Call, at: Timestamp, failures: Int)
        /// Nobody tries it any more, unless an operator says so.
        case dead(Call, failures: Int)
        /// It waits until an operator enables the website again.
        case suspended(Call, failures: Int)
        /// The website is not called any more. To be told once.
        case disabled(WebhookHealth.Reason)
        /// The website is back: all that waits for it is due now.
        case recovered
    }

    /// How many are under way to one website.
    public static var maxInFlight: Int { 4 }
    /// So long a website is left alone at most because one of its answers asked for it.
    public static var maxPause: Duration { .seconds(3600) }

    public private(set) var health: WebhookHealth
    private let schedule: RetrySchedule
    private let maxInFlight: Int
    private var waiting: [Entry] = []
    private var inFlight: [Call: Entry] = [:]
    /// Of these under way, those that left for what was before `reset`.
    private var former: Set<Call> = []
    private var pausedUntil: Timestamp?
    /// It said that it has too much to do, and has taken nothing since.
    private var isOverloaded = false

    public init(
        _ standing: WebhookHealth = WebhookHealth(), schedule: RetrySchedule = .standard,
        maxInFlight: Int = WebhookQueue.maxInFlight
    ) {
        self.health = standing
        self.schedule = schedule
        self.maxInFlight = max(maxInFlight, 1)
    }

    public var isEmpty: Bool { waiting.isEmpty && inFlight.isEmpty }
    public var underWayCount: Int { inFlight.count }

    /// How many more are worth taking from the store now.
    public func room(at now: Timestamp) -> Int { max(free(at: now) - waiting.count, 0) }

    private func free(at now: Timestamp) -> Int {
        if health.isDisabled { return 0 }
        // Of a clock that was set back it is not waited for.
        if let pausedUntil, now < pausedUntil, pausedUntil - now <= Self.maxPause { return 0 }
        return max((isOverloaded || health.isDown ? 1 : maxInFlight) - inFlight.count, 0)
    }

    /// When it is worth asking again though nothing ends until then; nil where it does not rest.
    public func restEnd(at now: Timestamp) -> Timestamp? {
        guard let pausedUntil, now < pausedUntil, pausedUntil - now <= Self.maxPause else { return nil }
        return pausedUntil
    }

    /// Nothing would be lost with it: how it stands with the website, the store knows.
    public func isIdle(at now: Timestamp) -> Bool { isEmpty && !isOverloaded && restEnd(at: now) == nil }

    /// Takes one in hand; false where it is already.
    @discardableResult
    public mutating func add(_ entry: Entry) -> Bool {
        guard inFlight[entry.call] == nil, !waiting.contains(where: { $0.call == entry.call }) else { return false }
        waiting.append(entry)
        return true
    }

    /// The next that leaves now; to be asked until there is none.
    public mutating func next(at now: Timestamp) -> Entry? {
        guard free(at: now) > 0, let at = waiting.indices.first(where: mayLeave) else { return nil }
        let entry = waiting.remove(at: at)
        inFlight[entry.call] = entry
        return entry
    }

    private func mayLeave(_ at: Int) -> Bool {
        let entry = waiting[at]
        guard let thread = entry.thread else { return true }
        return !inFlight.values.contains { $0.thread == thread }
            && !waiting.contains { $0.thread == thread && $0.ordinal < entry.ordinal }
    }

    /// One that was under way has ended; of one that was not, nothing follows.
    ///
    /// - Parameter chance: from 0 up to 1.
    public mutating func end(
        _ call: Call, _ outcome: WebhookOutcome, at now: Timestamp, chance: Double
    ) -> [Effect] {
        guard let entry = inFlight.removeValue(forKey: call) else { return [] }
        let meaning = outcome.meaning
        let isFormer = former.remove(call) != nil
        let change = isFormer ? nil : health.record(meaning, at: now)
        var effects: [Effect]
        switch meaning {
        case .delivered:
            if !isFormer { isOverloaded = false }
            effects = [.delivered(call)]
        case .notAttempted:
            effects = requeue(
                entry, failures: entry.failures, at: now + RetrySchedule.spread(RetrySchedule.soon, chance))
        // Of what is called now, it was no try.
        case .unsubscribed where isFormer, .failed where isFormer:
            effects = requeue(entry, failures: entry.failures, at: now)
        case .unsubscribed: effects = [.suspended(call, failures: entry.failures)]
        case .failed(let isBusy, let wish):
            if isBusy { rest(wish, at: now) }
            let failures = entry.failures + 1
            let due = schedule.next(failures: failures, retryAfter: wish, at: now, chance: chance)
            effects = due.map { requeue(entry, failures: failures, at: $0) } ?? [.dead(call, failures: failures)]
        }
        if health.isDisabled { effects = effects.map(Self.shelf) + suspendAll() }
        switch change {
        case .disabled(let reason): effects.append(.disabled(reason))
        case .recovered: effects.append(.recovered)
        case nil: break
        }
        return effects
    }

    /// An operator has disabled or enabled it, or another relay has seen how it stands. What is under way comes to its end.
    public mutating func update(_ standing: WebhookHealth) -> [Effect] {
        let wasDisabled = self.health.isDisabled
        self.health = standing
        if standing.isDisabled { return suspendAll() }
        if wasDisabled {
            isOverloaded = false
            pausedUntil = nil
        }
        return []
    }

    /// It is called elsewhere, or an operator has had it begin anew. Nothing is held against it that was before, nor what
    /// becomes of that which is under way still.
    public mutating func reset() {
        (isOverloaded, pausedUntil) = (false, nil)
        former = Set(inFlight.keys)
    }

    /// The relay ends: what has not left goes back as it came. What is under way is not touched.
    public mutating func release(at now: Timestamp) -> [Effect] {
        defer { waiting = [] }
        return waiting.map { .retry($0.call, at: now, failures: $0.failures) }
    }

    /// Those of its thread that come after it go with it, and are no sooner due.
    private mutating func requeue(_ entry: Entry, failures: Int, at due: Timestamp) -> [Effect] {
        var effects = [Effect.retry(entry.call, at: due, failures: failures)]
        guard let thread = entry.thread else { return effects }
        for other in waiting where other.thread == thread {
            effects.append(.retry(other.call, at: due, failures: other.failures))
        }
        waiting.removeAll { $0.thread == thread }
        return effects
    }

    private mutating func suspendAll() -> [Effect] {
        defer { waiting = [] }
        return waiting.map { .suspended($0.call, failures: $0.failures) }
    }

    private static func shelf(_ effect: Effect) -> Effect {
        if case .retry(let call, _, let failures) = effect { .suspended(call, failures: failures) } else { effect }
    }

    private mutating func rest(_ retryAfter: Duration?, at now: Timestamp) {
        isOverloaded = true
        guard let retryAfter, retryAfter > .zero else { return }
        let until = now + min(retryAfter, Self.maxPause)
        pausedUntil = max(restEnd(at: now) ?? until, until)
    }
}
