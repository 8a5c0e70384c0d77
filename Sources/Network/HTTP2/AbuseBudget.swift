import World

/// The abuse budget of one peer: what it may cost us beyond its requests.
///
/// HTTP/2 lets a peer make work without a request: resets in both directions, control frames, large
/// header blocks and new TLS keys. Each kind has a cost. All kinds share one bucket, so an attack
/// cannot be spread over kinds. The bucket fills with time and with completed work. When it is
/// empty, the connection ends with ENHANCE_YOUR_CALM.
///
/// Invariant: the budget never exceeds its capacity, so an idle peer cannot save up for a flood.
/// Risk: a cost that is too high ends the connections of honest clients, and a cost that is too low
/// does not stop an attack. Tests: `HostileTests`, `AccountingTests`, `HeaderWorkTests`,
/// `KeyUpdateTests`.
struct AbuseBudget {
    /// The cost of a reset by the peer (Rapid Reset), or of our reset that the peer provoked
    /// (MadeYouReset). The work for the stream is lost.
    static let reset = 10
    static let settings = 5
    /// The cost of PING, PRIORITY, WINDOW_UPDATE, CONTINUATION, empty DATA, and unknown frame
    /// types.
    static let control = 1
    /// The cost of DATA or HEADERS on a stream that has ended, in addition to the cost of the frame
    /// itself.
    static let closedStream = 2
    /// The cost of a change of the TLS keys, which takes as much work as several requests.
    static let keyUpdate = 10
    /// Decoded bytes of a header block that are free. Each further `headerBytesPerCharge` costs
    /// one.
    static let freeHeaderBytes = 4096
    static let headerBytesPerCharge = 1024
    /// The amount earned for every DATA frame sent, because the peer must open two windows for it,
    /// and for every request answered.
    static let earned = 2

    private let capacity: Int
    private let perSecond: Int
    private var left: Int
    private var filledAt: Instant

    init(capacity: Int, perSecond: Int, now: Instant) {
        self.capacity = capacity
        self.perSecond = perSecond
        left = capacity
        filledAt = now
    }

    /// Takes `cost` from the budget. Returns false if the peer has used it up.
    mutating func charge(_ cost: Int, now: Instant) -> Bool {
        left -= cost
        guard left < 0 else { return true }
        // Refills only here, so that the clock is not read for a peer that behaves.
        let seconds = (now - filledAt).wholeMilliseconds
        let filled = Int(clamping: seconds) * perSecond / 1000
        if filled > 0 {
            left = min(capacity, left + filled)
            filledAt = now
        }
        return left >= 0
    }

    mutating func earn() { left = min(capacity, left + Self.earned) }
}
