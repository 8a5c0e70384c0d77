import Synchronization
import World

/// Delays password guesses.
///
/// It counts by name, whether or not the name exists, because an attacker can use any number of
/// addresses. It decides before the password is hashed, so refused guesses cost no hash. Tested in
/// `ShopComponentTests.swift` and `ShopDefenceTests.swift`.
final class Throttle: Sendable {
    private struct Guesses {
        var wrong = 0
        var until: Instant
    }

    static let free = 5
    static let pause = Duration.seconds(30)
    private static let most = 10_000

    private let guesses = Mutex<[String: Guesses]>([:])

    /// Counts an attempt before its password is verified. It counts as wrong until `succeeded`, so
    /// that simultaneous guesses count too.
    ///
    /// - Returns: the pause until the next attempt under that name; nil if this attempt may
    ///   proceed.
    func attempt(_ name: String, at now: Instant) -> Duration? {
        guesses.withLock { guesses in
            if let known = guesses[name], known.wrong >= Self.free, known.until > now { return known.until - now }
            if guesses.count >= Self.most { guesses = guesses.filter { $0.value.until > now } }
            // When the table is full of active names, attempts under new names are refused.
            guard guesses[name] != nil || guesses.count < Self.most else { return Self.pause }
            guesses[name, default: Guesses(until: now)].wrong += 1
            guesses[name]?.until = now + Self.pause
            return nil
        }
    }

    func succeeded(_ name: String) { guesses.withLock { $0[name] = nil } }
}
