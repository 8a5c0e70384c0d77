import Glibc
import World

/// The requests of each account in the running minute.
///
/// Purpose: an account of the help desk that was stolen, or a script that runs wild, cannot lock all
/// users, or read all of them one by one, before somebody notices.
struct ControlLimits {
    static let minute = Duration.seconds(60)
    /// The number of accounts above which those of earlier minutes are forgotten.
    private static let many = 256

    private struct Use {
        let start: Instant
        var requests = 0
        var changes = 0
    }

    private var uses: [uid_t: Use] = [:]
    /// The accounts that were refused in the running minute, and are in the log.
    private var reported: Set<uid_t> = []
    private var reportsSince: Instant?

    /// Counts a request. Returns the time after which it may come again; nil if it may come now.
    mutating func admit(
        _ user: uid_t, isChange: Bool, at now: Instant, by settings: Settings.ControlSettings
    ) -> Duration? {
        if uses.count > Self.many { uses = uses.filter { now - $0.value.start < Self.minute } }
        var use = uses[user] ?? Use(start: now)
        if now - use.start >= Self.minute { use = Use(start: now) }
        guard use.requests < settings.requests, !isChange || use.changes < settings.changes else {
            uses[user] = use
            return Self.minute - (now - use.start)
        }
        use.requests += 1
        if isChange { use.changes += 1 }
        uses[user] = use
        return nil
    }

    /// Whether the log shall have a line about this refusal: one for each account and minute, so that
    /// nobody fills the log.
    mutating func mustReport(_ user: uid_t, at now: Instant) -> Bool {
        if reportsSince.map({ now - $0 >= Self.minute }) ?? true {
            reportsSince = now
            reported = []
        }
        return reported.count < Self.many && reported.insert(user).inserted
    }
}
