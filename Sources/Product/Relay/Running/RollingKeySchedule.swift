import Synchronization
import World

/// The times at which the keys of one kind are made, used and ended.
///
/// A key is made after each period, and is used `lead` later. It ends two periods after it came
/// into use, so the previous key is accepted for at least as long as it was used. The newest key
/// that has started is used for new values.
///
/// Clocks: each relay judges by its own clock. A key that was made more than a period ahead of this
/// clock comes from a wrong clock, so it neither delays the next key nor makes one necessary. So a
/// relay whose clock is wrong makes one key in each period, besides that of the others. If a clock
/// goes back before the start of every key, the oldest key is used.
public struct RollingKeySchedule: Sendable, Equatable {
    public let period: Duration

    /// The time between the making of a key and its use. Every relay reads the keys each minute.
    public static let lead = Duration.seconds(300)
    /// The shortest period. It is longer than the lead and the life of a nonce.
    public static let shortest = Duration.seconds(3600)

    /// - Parameter period: at least `shortest`.
    public init(period: Duration) { self.period = max(period, Self.shortest) }

    /// Returns whether a new key must be made.
    func isDue(_ eras: [KeyEra], at now: Timestamp) -> Bool {
        let made = eras.map(\.madeAt).filter { $0 - period <= now }
        return !made.contains { now < $0 + period }
    }

    /// Returns the next key's number and times; nil if no number is left.
    ///
    /// - Parameters:
    ///   - all: the keys whose numbers are taken.
    ///   - usable: the keys that this relay can use until the new one starts.
    func next(
        _ kind: RollingKeyKind, after all: [KeyEra], using usable: [KeyEra], atOnce: Bool, at now: Timestamp
    ) -> KeyEra? {
        let (number, isTooHigh) = (all.map(\.number).max() ?? 0).addingReportingOverflow(1)
        guard !isTooHigh else { return nil }
        let isFirst = !usable.contains { $0.startsAt <= now && now < $0.endsAt }
        let start = atOnce || isFirst ? now : now + Self.lead
        return KeyEra(kind: kind, number: number, madeAt: now, startsAt: start, endsAt: start + period * 2)
    }

    /// Returns the era whose key is used for new values; nil if there is none.
    public static func current(_ eras: [KeyEra], at now: Timestamp) -> KeyEra? {
        let living = eras.filter { now < $0.endsAt }
        return living.filter { $0.startsAt <= now }.max { $0.number < $1.number }
            ?? living.min { $0.number < $1.number }
    }
}

/// The schedules of the rolling keys of an installation.
public struct RollingKeySettings: Sendable, Equatable {
    /// The schedule of the keys for nonces; nil if the relays use the key that is derived from the
    /// master key.
    public var nonces: RollingKeySchedule?
    /// The age at which the relays replace the secret of a website that fetches its secrets; nil if
    /// they do not.
    public var webhooks: Duration?

    public init(nonces: RollingKeySchedule? = nil, webhooks: Duration? = nil) {
        self.nonces = nonces
        self.webhooks = webhooks
    }
}

/// The time of the newest rolling key, for the metrics.
final class RollingKeyTimes: Sendable {
    private let made = Atomic<Int64>(0)

    /// In seconds since 1970; 0 if there is no key.
    var newest: Int64 { made.load(ordering: .relaxed) }

    func record(_ eras: [KeyEra]) {
        made.store(eras.map(\.madeAt.seconds).max() ?? 0, ordering: .relaxed)
    }
}
