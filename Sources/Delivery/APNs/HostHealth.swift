import World

/// What the whole process knows of one host: which of its addresses are in use, which are left alone, and when the next
/// connection may be opened. All loops and slots ask it, so that none of them hammers a host that the others have just
/// been refused by.
struct HostHealth {
    enum ConnectDecision: Equatable {
        /// Connect there, and say what became of it.
        case go(String)
        /// Every address is left alone until then.
        case wait(until: Instant)
    }

    private struct AddressHealth {
        /// Open, or on their way to it.
        var connections = 0
        var backoff = Backoff()
        var avoidedUntil: Instant?
        /// When the last failure was counted.
        var failedAt: Instant?
    }

    /// Names may resolve to other addresses every time: those that were of no use are forgotten.
    private static let memory = 64

    private var places: [String: AddressHealth] = [:]
    private var nextOpening: Instant?
    private(set) var open = 0
    /// Since a connection was last opened.
    private var failure: String?

    /// Why the host cannot be reached, if it cannot.
    var fault: String? { open == 0 ? failure : nil }

    /// How long to wait before opening a connection. `urgent`: a push waits, and there is no other to wait for.
    mutating func stagger(
        _ gap: Duration, urgent: Bool, at now: Instant, _ randomness: any Randomness
    ) -> Duration {
        let half = UInt64(max(gap.wholeMilliseconds / 2, 0))
        let step = Duration.milliseconds(half + randomness.number(below: 2 * half + 1))
        let turn = urgent ? now : max(now, nextOpening ?? now)
        nextOpening = max(turn, nextOpening ?? turn) + step
        return turn - now
    }

    /// Of the addresses that a name has now: one that is not left alone, that the asking pool (`own`) has no connection
    /// to, that few connections of the process go to, and that stands early in the list; in this order.
    mutating func requestOpening(_ addresses: [String], own: [String], at now: Instant, trial: Duration)
        -> ConnectDecision
    {
        forget(at: now)
        let free = addresses.filter { (places[$0]?.avoidedUntil ?? now) <= now }
        func load(_ address: String) -> (Int, Int) {
            (own.count { $0 == address }, places[address]?.connections ?? 0)
        }
        // The first of the least, as `min` gives it.
        guard let address = free.min(by: { load($0) < load($1) }) else {
            return .wait(until: addresses.compactMap { places[$0]?.avoidedUntil }.min() ?? now + trial)
        }
        var place = places[address, default: AddressHealth()]
        place.connections += 1
        // One tries whether it is better now; the others wait for what comes of that.
        if place.backoff.failures > 0 { place.avoidedUntil = now + trial }
        places[address] = place
        return .go(address)
    }

    /// Whether some address may be tried, as far as is known.
    func isReachable(at now: Instant) -> Bool {
        places.isEmpty || places.values.contains { ($0.avoidedUntil ?? now) <= now }
    }

    /// How many addresses it knows.
    var remembered: Int { places.count }

    mutating func opened(_ address: String) {
        open += 1
        failure = nil
        places[address]?.avoidedUntil = nil
    }

    /// It has done its work for us, or has stood for long: what went wrong before is over.
    mutating func served(_ address: String) {
        places[address]?.backoff.succeeded()
        places[address]?.avoidedUntil = nil
    }

    /// A claim that came to nothing, or (`wasOpen`) a connection that served nothing. Returns for how long the address
    /// is left alone. `began`: when it was claimed, or opened. All those that were under way when one of them failed meet
    /// the same trouble, which counts once.
    mutating func failed(
        _ address: String, _ reason: String, wasOpen: Bool, began: Instant, at now: Instant,
        _ randomness: any Randomness
    ) -> Duration {
        ended(address, wasOpen: wasOpen)
        failure = reason
        var place = places[address, default: AddressHealth()]
        if let failedAt = place.failedAt, began < failedAt {
            return max((place.avoidedUntil ?? now) - now, .zero)
        }
        place.failedAt = now
        var pause = place.backoff.failed(randomness)
        // One that stood may have gone away for reasons of its own: the first time it is replaced at once.
        if wasOpen, place.backoff.failures == 1 { pause = .zero }
        place.avoidedUntil = now + pause
        places[address] = place
        return pause
    }

    /// The name has no address.
    mutating func unresolved(_ reason: String) { failure = reason }

    /// A claim that is given back, or (`wasOpen`) a connection that has had its day.
    mutating func ended(_ address: String, wasOpen: Bool) {
        if wasOpen { open -= 1 }
        guard var place = places[address] else { return }
        place.connections = max(0, place.connections - 1)
        let isPlain = place.connections == 0 && place.backoff.failures == 0
        places[address] = isPlain ? nil : place
    }

    private mutating func forget(at now: Instant) {
        guard places.count > Self.memory else { return }
        places = places.filter { $0.value.connections > 0 || ($0.value.avoidedUntil ?? now) > now }
    }
}
