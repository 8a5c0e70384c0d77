import World

/// The state of one host as the whole process sees it. It knows which addresses are in use, which
/// are in a back-off, and when the next connection may be opened.
///
/// Its purpose is that loops and slots share their failures: none hammers a host that has just
/// refused the others. Every opened or failed attempt must be reported once, by `opened`, `failed`
/// or `ended`, since the counts of connections depend on it. Failures of attempts that were under
/// way together count once.
///
/// Tests: `HostHealthTests` and `TwoHostsTests`.
struct HostHealth {
    enum ConnectDecision: Equatable {
        /// Connect to this address, and report the result.
        case go(String)
        /// Every address is in its back-off until then.
        case wait(until: Instant)
    }

    private struct AddressHealth {
        /// The number of connections that are open or being opened.
        var connections = 0
        var backoff = Backoff()
        var avoidedUntil: Instant?
        /// The time at which the last failure was counted.
        var failedAt: Instant?
    }

    /// The number of addresses above which useless ones are forgotten, since a name may resolve to
    /// other addresses every time.
    private static let memory = 64

    /// The failed attempts in a row after which the host counts as down.
    static let downAfter = 3

    private var healths: [String: AddressHealth] = [:]
    private var nextOpening: Instant?
    private(set) var open = 0
    /// The last failure since a connection was opened.
    private var failure: String?
    /// The failed attempts since a connection was opened. Attempts that ran at the same time count
    /// once.
    private var failures = 0
    private var failedAt: Instant?

    /// Whether the host is down: no connection is open, and the last attempts have failed, one
    /// after the other.
    var isDown: Bool { open == 0 && failures >= Self.downAfter }

    /// The reason why the host cannot be reached; nil while a connection is open or nothing has
    /// failed.
    var fault: String? { open == 0 ? failure : nil }

    /// Returns how long to wait before the next connection is opened.
    ///
    /// - Parameter gap: the mean distance between two openings; each one varies by half.
    /// - Parameter urgent: whether a push waits and there is no other connection to wait for.
    mutating func stagger(
        _ gap: Duration, urgent: Bool, at now: Instant, _ randomness: any Randomness
    ) -> Duration {
        let half = UInt64(max(gap.wholeMilliseconds / 2, 0))
        let step = Duration.milliseconds(half + randomness.number(below: 2 * half + 1))
        let turn = urgent ? now : max(now, nextOpening ?? now)
        nextOpening = max(turn, nextOpening ?? turn) + step
        return turn - now
    }

    /// Chooses an address among those that the name has now and reserves a connection there. The
    /// choice excludes addresses in a back-off. It prefers addresses without a connection of the
    /// pool, then those with few connections of the process, then the order of the list.
    ///
    /// - Parameter own: the addresses that the asking pool is already connected or connecting to.
    /// - Parameter trial: how long a single attempt at a failed address keeps the others away.
    mutating func requestOpening(_ addresses: [String], own: [String], at now: Instant, trial: Duration)
        -> ConnectDecision
    {
        forget(at: now)
        let free = addresses.filter { (healths[$0]?.avoidedUntil ?? now) <= now }
        func load(_ address: String) -> (Int, Int) {
            (own.count { $0 == address }, healths[address]?.connections ?? 0)
        }
        // `min` returns the first of several equal addresses, which keeps the order of the list.
        guard let address = free.min(by: { load($0) < load($1) }) else {
            return .wait(until: addresses.compactMap { healths[$0]?.avoidedUntil }.min() ?? now + trial)
        }
        var health = healths[address, default: AddressHealth()]
        health.connections += 1
        // After failures a single attempt tries the address; the others wait for its result.
        if health.backoff.failures > 0 { health.avoidedUntil = now + trial }
        healths[address] = health
        return .go(address)
    }

    /// Returns whether some address may be tried, as far as is known.
    func isReachable(at now: Instant) -> Bool {
        healths.isEmpty || healths.values.contains { ($0.avoidedUntil ?? now) <= now }
    }

    /// The number of known addresses.
    var remembered: Int { healths.count }

    mutating func opened(_ address: String) {
        open += 1
        failure = nil
        failures = 0
        healths[address]?.avoidedUntil = nil
    }

    /// Ends the back-off of an address whose connection served a push or stayed open for long.
    mutating func served(_ address: String) {
        healths[address]?.backoff.succeeded()
        healths[address]?.avoidedUntil = nil
    }

    /// Records a failed attempt, or the end of a connection that served nothing. Returns how long
    /// the address is avoided. Attempts that were under way when one of them failed meet the same
    /// fault, which counts once.
    ///
    /// - Parameter wasOpen: whether the connection was open.
    /// - Parameter began: the time of the attempt, or of the opening.
    mutating func failed(
        _ address: String, _ reason: String, wasOpen: Bool, began: Instant, at now: Instant,
        _ randomness: any Randomness
    ) -> Duration {
        ended(address, wasOpen: wasOpen)
        failure = reason
        if !wasOpen { count(began: began, at: now) }
        var health = healths[address, default: AddressHealth()]
        if let failedAt = health.failedAt, began < failedAt {
            return max((health.avoidedUntil ?? now) - now, .zero)
        }
        health.failedAt = now
        var pause = health.backoff.failed(randomness)
        // The server may close an open connection for harmless reasons: the first time it is
        // replaced at once.
        if wasOpen, health.backoff.failures == 1 { pause = .zero }
        health.avoidedUntil = now + pause
        healths[address] = health
        return pause
    }

    /// Records that the name could not be resolved.
    ///
    /// - Parameter began: the time at which that was requested.
    mutating func unresolved(_ reason: String, began: Instant, at now: Instant) {
        failure = reason
        count(began: began, at: now)
    }

    private mutating func count(began: Instant, at now: Instant) {
        if let failedAt, began < failedAt { return }
        failedAt = now
        failures += 1
    }

    /// Records an abandoned attempt, or (`wasOpen`) the end of a connection that was not at fault.
    mutating func ended(_ address: String, wasOpen: Bool) {
        if wasOpen { open -= 1 }
        guard var health = healths[address] else { return }
        health.connections = max(0, health.connections - 1)
        let isPlain = health.connections == 0 && health.backoff.failures == 0
        healths[address] = isPlain ? nil : health
    }

    private mutating func forget(at now: Instant) {
        guard healths.count > Self.memory else { return }
        healths = healths.filter { $0.value.connections > 0 || ($0.value.avoidedUntil ?? now) > now }
    }
}
