import Synchronization
import World

/// A clock that the test moves. Wall time and monotonic time move together.
public final class TestTime: TimeSource {
    private let passed = Mutex(Duration.zero)
    private let start: Timestamp

    public init(start: Timestamp = Timestamp(seconds: 1_800_000_000)) { self.start = start }

    public func now() -> Timestamp { start + passed.withLock { $0 } }
    public func instant() -> Instant { Instant(nanoseconds: 1) + passed.withLock { $0 } }

    public func advance(by duration: Duration) { passed.withLock { $0 += duration } }
    /// Moves the clock forward to an instant; never back.
    public func advance(to instant: Instant) {
        passed.withLock { $0 = max($0, instant - Instant(nanoseconds: 1)) }
    }
}

/// Deterministic randomness from a seed (SplitMix64). Never use it for values that must be
/// unpredictable.
public final class SeededRandomness: Randomness, RandomNumberGenerator {
    private let state: Mutex<UInt64>

    public init(seed: UInt64) { state = Mutex(seed) }

    public func next() -> UInt64 {
        state.withLock { state in
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = state
            mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return mixed ^ (mixed >> 31)
        }
    }

    public func milliseconds(_ range: Range<Int64>) -> Duration {
        .milliseconds(range.lowerBound + Int64(number(below: UInt64(range.upperBound - range.lowerBound))))
    }

    public func fill(_ bytes: UnsafeMutableRawBufferPointer) {
        for index in bytes.indices { bytes[index] = UInt8(truncatingIfNeeded: next() >> 32) }
    }
}
