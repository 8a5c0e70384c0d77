import Synchronization
import World

/// Slows down whoever guesses somebody's password. It counts by name, known or not: who guesses can have any number of
/// addresses. It asks before the password is looked at, so that guesses cost us nothing meanwhile.
final class Throttle: Sendable {
    private struct Guesses {
        var wrong = 0
        var until: Instant
    }

    static let free = 5
    static let pause = Duration.seconds(30)
    private static let most = 10_000

    private let guesses = Mutex<[String: Guesses]>([:])

    /// Before a password is looked at: it counts as wrong until it was right, so that guesses which come at once are counted
    /// too.
    ///
    /// - Returns: how long none is looked at under that name; nil when this one may be.
    func attempt(_ name: String, at now: Instant) -> Duration? {
        guesses.withLock { guesses in
            if let known = guesses[name], known.wrong >= Self.free, known.until > now { return known.until - now }
            if guesses.count >= Self.most { guesses = guesses.filter { $0.value.until > now } }
            // Whoever guesses under thousands of names at once gets no new one looked at.
            guard guesses[name] != nil || guesses.count < Self.most else { return Self.pause }
            guesses[name, default: Guesses(until: now)].wrong += 1
            guesses[name]?.until = now + Self.pause
            return nil
        }
    }

    func succeeded(_ name: String) { guesses.withLock { $0[name] = nil } }
}
