import World

/// How long to leave a host alone that could not be reached, or that has served nothing since the last time: not at all
/// at first, then 1 s, then twice as long each time, up to 60 s. Up to half is added by chance, so that relays do not
/// come back together.
struct Backoff {
    private var failures = 0

    mutating func failed(_ randomness: any Randomness) -> Duration {
        defer { failures = min(failures + 1, 10) }
        guard failures > 0 else { return .zero }
        let base = min(Int64(1000) << (failures - 1), 40_000)
        return .milliseconds(base + Int64(randomness.number(below: UInt64(base / 2 + 1))))
    }

    mutating func succeeded() { failures = 0 }
}
