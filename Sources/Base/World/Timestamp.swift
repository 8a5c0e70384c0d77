/// A time of the wall clock, in milliseconds since 1970 in UTC. It is never used to measure
/// durations.
public struct Timestamp: Hashable, Comparable, Sendable {
    public var milliseconds: Int64

    public init(milliseconds: Int64) { self.milliseconds = milliseconds }
    /// Creates a time from seconds that a peer may have chosen. A number beyond 73 million years
    /// becomes that limit, so that neither this nor a difference of two times overflows.
    public init(seconds: Int64) {
        let limit = Int64.max / 4000
        milliseconds = min(max(seconds, -limit), limit) * 1000
    }

    /// Whole seconds, rounded down, as `iat` and `exp` require.
    public var seconds: Int64 { milliseconds.quotientRoundingDown(by: 1000) }

    /// The time rounded up to a whole second. Questions about what has not ended then often have the
    /// same time, and nothing that ends within a second is promised.
    public var roundedUp: Timestamp { Timestamp(milliseconds: -(-milliseconds).quotientRoundingDown(by: 1000) * 1000) }

    public static func < (a: Timestamp, b: Timestamp) -> Bool { a.milliseconds < b.milliseconds }
    public static func + (a: Timestamp, b: Duration) -> Timestamp {
        Timestamp(milliseconds: a.milliseconds + b.wholeMilliseconds)
    }
    public static func - (a: Timestamp, b: Duration) -> Timestamp {
        Timestamp(milliseconds: a.milliseconds - b.wholeMilliseconds)
    }
    public static func - (a: Timestamp, b: Timestamp) -> Duration {
        .milliseconds(a.milliseconds - b.milliseconds)
    }
}

/// A time of the monotonic clock, in nanoseconds since an arbitrary start. It never jumps, and has
/// no meaning on another machine.
public struct Instant: Hashable, Comparable, Sendable {
    public var nanoseconds: Int64

    public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    public static func < (a: Instant, b: Instant) -> Bool { a.nanoseconds < b.nanoseconds }
    public static func + (a: Instant, b: Duration) -> Instant {
        Instant(nanoseconds: a.nanoseconds + b.wholeNanoseconds)
    }
    public static func - (a: Instant, b: Instant) -> Duration { .nanoseconds(a.nanoseconds - b.nanoseconds) }
}

extension Duration {
    public var wholeMilliseconds: Int64 {
        Int64(attoseconds / 1_000_000_000_000_000)
    }
    public var wholeNanoseconds: Int64 {
        // `components` divides twice, in software.
        Int64(attoseconds / 1_000_000_000)
    }
}

extension Int64 {
    /// Division that rounds towards minus infinity, as calendars need it for times before 1970.
    func quotientRoundingDown(by divisor: Int64) -> Int64 {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? quotient - 1 : quotient
    }
}
