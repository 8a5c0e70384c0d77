import World

/// A clock that is wrong by a fixed duration. Its monotonic time is that of the system.
public struct WrongTime: TimeSource {
    private let error: Duration

    public init(by error: Duration) { self.error = error }

    public func now() -> Timestamp { SystemTime().now() + error }
    public func instant() -> Instant { SystemTime().instant() }
}
