import World

/// The budget of one peer for costs beyond its requests: resets in both directions, frames that
/// carry no request, large header blocks and new keys. All kinds share one bucket, so an attack
/// cannot be spread over kinds. The bucket fills with time and with completed work.
struct AbuseBudget {
    /// A reset by the peer (Rapid Reset), or one of ours that it provoked (MadeYouReset): work for nothing.
    static let reset = 10
    static let settings = 5
    /// PING, PRIORITY, WINDOW_UPDATE, CONTINUATION, empty DATA, and whatever we do not know.
    static let control = 1
    /// DATA or HEADERS on a stream that has ended, beside what the frame costs anyway.
    static let closedStream = 2
    /// New keys for TLS, which cost as much as some requests.
    static let keyUpdate = 10
    /// Decoded bytes of a header block that are free. The rest costs one for each `headerBytesPerCharge`.
    static let freeHeaderBytes = 4096
    static let headerBytesPerCharge = 1024
    /// For every DATA frame sent, because the peer has to open two windows for it, and for every request answered.
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

    /// False when the peer has used it up.
    mutating func charge(_ cost: Int, now: Instant) -> Bool {
        left -= cost
        guard left < 0 else { return true }
        // The clock is asked only now: a peer that behaves never comes here.
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
