import Synchronization
import World

/// The clock of one relay, as its phone knows it: the clock of the phone, corrected by the relay's
/// signed time.
///
/// The phone uses it for everything that this relay judges by time: its proofs, and the codes of
/// this relay. It must not use it for codes of other issuers, because a dishonest relay could
/// otherwise make the phone produce codes that another issuer accepts later.
public final class RelayClock: TimeSource {
    private let phone: any TimeSource
    private let correction: Mutex<Duration>

    /// - Parameter offset: the offset that was measured before.
    public init(_ phone: any TimeSource, offset: Duration = .zero) {
        self.phone = phone
        correction = Mutex(offset)
    }

    /// The relay's clock minus the phone's clock.
    public var offset: Duration {
        get { correction.withLock { $0 } }
        set { correction.withLock { $0 = newValue } }
    }

    public func now() -> Timestamp { phone.now() + offset }
    public func instant() -> Instant { phone.instant() }

    /// Returns the time of this clock under another offset.
    func now(under offset: Duration) -> Timestamp { phone.now() + offset }
}
