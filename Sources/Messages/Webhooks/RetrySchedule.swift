import World

/// When a call is tried: at once, and after each failure once more, until it is given up.
public struct RetrySchedule: Sendable, Equatable {
    /// The pause before each try, the first included.
    public let pauses: [Duration]

    /// More than a day and three hours in all: what happens while a website is down for a day arrives by itself.
    public static let standard = RetrySchedule(
        pauses: [
            .zero, .seconds(5), .seconds(300), .seconds(1800), .seconds(2 * 3600), .seconds(5 * 3600),
            .seconds(10 * 3600), .seconds(10 * 3600),
        ])

    /// What was not tried at all is taken up again after that.
    public static let soon = Duration.seconds(1)

    public init(pauses: [Duration]) { self.pauses = pauses }

    /// How long no website makes a call wait, however long it wishes.
    public var longestWish: Duration { pauses.max() ?? .zero }

    /// When it is tried again; nil after the last try.
    ///
    /// - Parameters:
    ///   - failures: the tries that failed, the one just now included.
    ///   - retryAfter: what the website asked for by Retry-After. It makes the call wait longer, never less long: who says "one
    ///     second" to every try would soon have had all of them.
    ///   - chance: from 0 up to 1. By so much of a quarter a pause is longer, so that what failed together does not come
    ///     back together; it is never shorter, so that the schedule holds as long as it says.
    public func next(failures: Int, retryAfter: Duration? = nil, at now: Timestamp, chance: Double) -> Timestamp? {
        guard failures < pauses.count else { return nil }
        let pause = max(pauses[max(failures, 0)], min(retryAfter ?? .zero, longestWish))
        return now + Self.spread(pause, chance)
    }

    static func spread(_ pause: Duration, _ chance: Double) -> Duration { pause * (1 + min(max(chance, 0), 1) / 4) }
}
