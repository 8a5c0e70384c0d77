import CLinux
import Glibc

/// The source of time, which tests replace.
public protocol TimeSource: Sendable {
    /// The wall clock, for times that people and other machines read.
    func now() -> Timestamp
    /// The monotonic clock: for deadlines, ages and back-off.
    func instant() -> Instant
}

/// The source of randomness, which tests replace. Its output must be unpredictable.
public protocol Randomness: Sendable {
    func fill(_ bytes: UnsafeMutableRawBufferPointer)
}

extension Randomness {
    public func bytes(_ count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            fill(UnsafeMutableRawBufferPointer(buffer))
            filled = count
        }
    }

    /// A number below `bound`. Every one is equally likely.
    public func number(below bound: UInt64) -> UInt64 {
        var source = Drawn(randomness: self)
        return UInt64.random(in: 0..<bound, using: &source)
    }

    /// Decimal digits with leading zeros, at most 19. Every number of that length is equally
    /// likely.
    public func digits(_ count: Int) -> String {
        guard count > 0 else { return "" }
        let bound = (0..<count).reduce(UInt64(1)) { bound, _ in bound * 10 }
        let plain = String(number(below: bound))
        return String(repeating: "0", count: count - plain.utf8.count) + plain
    }
}

private struct Drawn: RandomNumberGenerator {
    let randomness: any Randomness

    mutating func next() -> UInt64 {
        randomness.bytes(8).reduce(0) { $0 << 8 | UInt64($1) }
    }
}

/// The clocks of the system.
public struct SystemTime: TimeSource {
    public init() {}

    public func now() -> Timestamp {
        var moment = timespec()
        clock_gettime(CLOCK_REALTIME, &moment)
        return Timestamp(milliseconds: Int64(moment.tv_sec) * 1000 + Int64(moment.tv_nsec) / 1_000_000)
    }

    public func instant() -> Instant {
        var moment = timespec()
        clock_gettime(CLOCK_MONOTONIC, &moment)
        return Instant(nanoseconds: Int64(moment.tv_sec) * 1_000_000_000 + Int64(moment.tv_nsec))
    }
}

/// The random number generator of the kernel.
public struct SystemRandomness: Randomness {
    public init() {}

    public func fill(_ bytes: UnsafeMutableRawBufferPointer) {
        var filled = 0
        while filled < bytes.count, let start = bytes.baseAddress {
            let count = getrandom(start + filled, bytes.count - filled, 0)
            if count > 0 {
                filled += count
            } else if errno != EINTR {
                // Without randomness every secret could be guessed, so the process ends.
                fatalError("getrandom failed: errno \(errno)")
            }
        }
    }
}
