/// How long to wait after failures: 1 s, then twice as long each time, up to 60 s. Up to half is added by chance, so that
/// those who failed together do not come back together.
public struct Backoff {
    /// So many failures in a row cost nothing.
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
