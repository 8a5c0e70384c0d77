/// The pause after consecutive failures: 1 s, doubled after each failure up to 40 s, plus a random
/// part of up to one half. So it is at most 60 s. The random part keeps clients that failed
/// together from retrying together.
public struct Backoff {
    /// The number of consecutive failures without a pause.
    private let free: Int
    public private(set) var failures = 0

    public init(free: Int = 0) { self.free = free }

    public mutating func failed(_ randomness: any Randomness) -> Duration {
        failures = min(failures + 1, free + 10)
        guard failures > free else { return .zero }
        let base = min(Int64(1000) << (failures - free - 1), 40_000)
        return .milliseconds(base + Int64(randomness.number(below: UInt64(base / 2 + 1))))
    }

    public mutating func succeeded() { failures = 0 }
}
