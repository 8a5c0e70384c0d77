import Foundation

/// The clocks of the phone.
public protocol PhoneClock: Sendable {
    /// The time of day, which the person can set.
    func now() -> Timestamp
    /// The milliseconds of a clock that cannot be set, and that also counts while the phone sleeps.
    func monotonic() -> Int64
    func sleep(milliseconds: Int64) async
}

public struct SystemClock: PhoneClock {
    private let start = ContinuousClock.now

    public init() {}

    public func now() -> Timestamp { Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000)) }

    public func monotonic() -> Int64 {
        let time = (ContinuousClock.now - start).components
        return time.seconds * 1000 + time.attoseconds / 1_000_000_000_000_000
    }

    public func sleep(milliseconds: Int64) async {
        // A cancelled task does not pause; its next request ends it.
        try? await Task.sleep(for: .milliseconds(milliseconds))
    }
}
