import World

/// The queue of webhooks to one website that this relay has leased. It decides which webhook is
/// sent next and what follows from an outcome. It has no clock, socket or store: the owner reports
/// events and carries out the effects. Each website has its own queue, so that none waits for
/// another.
///
/// Invariant: the webhooks of one thread (one challenge) arrive in the order of their ordinals. At
/// most one of a thread is in flight, and none is sent before those with lower ordinals have
/// arrived or are dead letters. When one is retried, the later ones of its thread go back to the
/// store with it. Webhooks without a thread go in order of arrival.
///
/// Limits: at most `window` are in flight. Only one is in flight while the website is overloaded or
/// failing, and none during a pause from Retry-After or while the endpoint is disabled. The window
/// of a website that answers quickly grows while it is full (`WebhookWindow`).
///
/// Failures:
/// - An attempt fails: `RetrySchedule` gives the next time; after the last attempt the webhook
///   becomes a dead letter.
/// - The endpoint is disabled: all waiting webhooks are suspended, also those that fail later.
/// - The endpoint is replaced: see `reset`; later outcomes of the former endpoint change neither
///   counts nor health.
///
/// Tests: `WebhookQueueTests` and `WebhookQueueSimulationTests`; with the store in
/// `WebhookDeliveryTests` and `WebhookOutageTests`.
public struct WebhookQueue<ID: Hashable & Sendable, Thread: Hashable & Sendable>: Sendable {
    public struct Entry: Sendable, Equatable {
        public let id: ID
        public let thread: Thread?
        /// The position within its thread. It follows from the event and not from a clock, since
        /// each relay has its own clock.
        public let ordinal: Int
        /// The number of failed attempts so far.
        public let failures: Int

        public init(_ id: ID, thread: Thread? = nil, ordinal: Int = 0, failures: Int = 0) {
            self.id = id
            self.thread = thread
            self.ordinal = ordinal
            self.failures = failures
        }
    }

    /// A result that the owner must store. A webhook named by an effect is no longer in the queue.
    public enum Effect: Sendable, Equatable {
        case delivered(ID)
        /// The webhook is due again at that time, with this number of failed attempts.
        case retry(ID, at: Timestamp, failures: Int)
        /// The webhook becomes a dead letter, which only an operator can replay.
        case dead(ID, failures: Int)
        /// The webhook waits until an operator enables the endpoint again.
        case suspended(ID, failures: Int)
        /// The endpoint is disabled; this is reported once.
        case disabled(WebhookHealth.Reason)
        /// The endpoint works again: all its waiting webhooks are due now.
        case recovered
    }

    /// The longest pause that a website can request for all its webhooks.
    public static var maxPause: Duration { .seconds(3600) }

    public private(set) var health: WebhookHealth
    private let schedule: RetrySchedule
    private var window: WebhookWindow
    private var waiting: [Entry] = []
    private var inFlight: [ID: Flight] = [:]
    /// The webhooks in flight that were sent to the endpoint before `reset`.
    private var former: Set<ID> = []
    private var pausedUntil: Timestamp?
    /// Whether the website reported overload and has accepted nothing since.
    private var isOverloaded = false

    /// A webhook in flight, and when it was sent.
    private struct Flight {
        let entry: Entry
        let since: Timestamp
    }

    public init(
        _ health: WebhookHealth = WebhookHealth(), schedule: RetrySchedule = .standard,
        window: WebhookWindow = WebhookWindow()
    ) {
        self.health = health
        self.schedule = schedule
        self.window = window
    }

    public var isEmpty: Bool { waiting.isEmpty && inFlight.isEmpty }
    public var underWayCount: Int { inFlight.count }

    /// Returns how many more webhooks are worth leasing now.
    public func room(at now: Timestamp) -> Int { max(free(at: now) - waiting.count, 0) }

    private func free(at now: Timestamp) -> Int {
        if health.isDisabled { return 0 }
        // If the clock went back, don't wait.
        if let pausedUntil, now < pausedUntil, pausedUntil - now <= Self.maxPause { return 0 }
        return max((isOverloaded || health.isDown ? 1 : window.size(at: now)) - inFlight.count, 0)
    }

    /// Returns the end of the pause, when the queue should be asked again even if no webhook ends
    /// before; nil without a pause.
    public func pauseEnd(at now: Timestamp) -> Timestamp? {
        guard let pausedUntil, now < pausedUntil, pausedUntil - now <= Self.maxPause else { return nil }
        return pausedUntil
    }

    /// Returns whether the queue can be discarded without loss; the store has the health.
    public func isIdle(at now: Timestamp) -> Bool {
        isEmpty && !isOverloaded && pauseEnd(at: now) == nil && !window.hasGrown(at: now)
    }

    /// Adds a webhook. Returns false if it is already in the queue.
    @discardableResult
    public mutating func add(_ entry: Entry) -> Bool {
        guard inFlight[entry.id] == nil, !waiting.contains(where: { $0.id == entry.id }) else { return false }
        waiting.append(entry)
        return true
    }

    /// Returns the next webhook to send now. The owner calls this until it returns nil.
    public mutating func next(at now: Timestamp) -> Entry? {
        guard free(at: now) > 0, let at = waiting.indices.first(where: mayLeave) else { return nil }
        let entry = waiting.remove(at: at)
        inFlight[entry.id] = Flight(entry: entry, since: now)
        if inFlight.count >= window.size(at: now) { window.fill(at: now) }
        return entry
    }

    private func mayLeave(_ at: Int) -> Bool {
        let entry = waiting[at]
        guard let thread = entry.thread else { return true }
        return !inFlight.values.contains { $0.entry.thread == thread }
            && !waiting.contains { $0.thread == thread && $0.ordinal < entry.ordinal }
    }

    /// Records the outcome of a webhook in flight. Returns no effects if it is not in flight.
    ///
    /// - Parameter chance: a random number in 0..<1 for the jitter.
    public mutating func end(
        _ id: ID, _ outcome: WebhookOutcome, at now: Timestamp, jitter: Double
    ) -> [Effect] {
        guard let flight = inFlight.removeValue(forKey: id) else { return [] }
        let entry = flight.entry
        let meaning = outcome.meaning
        let isFormer = former.remove(id) != nil
        if !isFormer { window.end(meaning, sentAt: flight.since, at: now) }
        let change = isFormer ? nil : health.record(meaning, at: now)
        var effects: [Effect]
        switch meaning {
        case .delivered:
            if !isFormer { isOverloaded = false }
            effects = [.delivered(id)]
        case .notAttempted:
            effects = requeue(
                entry, failures: entry.failures, at: now + RetrySchedule.spread(RetrySchedule.soon, jitter))
        // It was not an attempt at the present endpoint.
        case .unsubscribed where isFormer, .failed where isFormer:
            effects = requeue(entry, failures: entry.failures, at: now)
        case .unsubscribed: effects = [.suspended(id, failures: entry.failures)]
        case .failed(let isBusy, let wish):
            if isBusy { pause(wish, at: now) }
            let failures = entry.failures + 1
            let due = schedule.next(failures: failures, retryAfter: wish, at: now, jitter: jitter)
            effects = due.map { requeue(entry, failures: failures, at: $0) } ?? [.dead(id, failures: failures)]
        }
        if health.isDisabled { effects = effects.map(Self.suspend) + suspendAll() }
        switch change {
        case .disabled(let reason): effects.append(.disabled(reason))
        case .recovered: effects.append(.recovered)
        case nil: break
        }
        return effects
    }

    /// Takes over the health after an operator or another relay changed it. Webhooks in flight
    /// continue to their outcomes.
    public mutating func update(_ health: WebhookHealth) -> [Effect] {
        let wasDisabled = self.health.isDisabled
        self.health = health
        if health.isDisabled { return suspendAll() }
        if wasDisabled {
            isOverloaded = false
            pausedUntil = nil
        }
        return []
    }

    /// Resets the queue after the endpoint changed or an operator reset it. Earlier overload and
    /// pauses end, and outcomes of webhooks still in flight no longer count against the endpoint.
    public mutating func reset() {
        (isOverloaded, pausedUntil) = (false, nil)
        window.reset()
        former = Set(inFlight.keys)
    }

    /// Returns all waiting webhooks to the store when the relay shuts down. Webhooks in flight are
    /// not affected.
    public mutating func release(at now: Timestamp) -> [Effect] {
        defer { waiting = [] }
        return waiting.map { .retry($0.id, at: now, failures: $0.failures) }
    }

    /// Returns a webhook to the store, with the later ones of its thread, which become due no
    /// sooner.
    private mutating func requeue(_ entry: Entry, failures: Int, at due: Timestamp) -> [Effect] {
        var effects = [Effect.retry(entry.id, at: due, failures: failures)]
        guard let thread = entry.thread else { return effects }
        for other in waiting where other.thread == thread {
            effects.append(.retry(other.id, at: due, failures: other.failures))
        }
        waiting.removeAll { $0.thread == thread }
        return effects
    }

    private mutating func suspendAll() -> [Effect] {
        defer { waiting = [] }
        return waiting.map { .suspended($0.id, failures: $0.failures) }
    }

    private static func suspend(_ effect: Effect) -> Effect {
        if case .retry(let id, _, let failures) = effect { .suspended(id, failures: failures) } else { effect }
    }

    private mutating func pause(_ retryAfter: Duration?, at now: Timestamp) {
        isOverloaded = true
        guard let retryAfter, retryAfter > .zero else { return }
        let until = now + min(retryAfter, Self.maxPause)
        pausedUntil = max(pauseEnd(at: now) ?? until, until)
    }
}
