import Domain
import Synchronization
import World

/// How many announcements one user is sent: whoever can make them happen must not be able to bury the one that matters
/// under hundreds. Each relay counts its own; log and audit have all of them.
final class NotificationBudget: Sendable {
    static let most = 10
    static let hour = Duration.seconds(3600)

    private struct Window {
        var since: Instant?
        var sent: [UserID: Set<OutboxEntryID>] = [:]
    }

    private let window = Mutex(Window())

    /// Whether this one is to be sent. Another try of one that was counted is free.
    func spend(_ entry: OutboxEntryID, of user: UserID, at now: Instant) -> Bool {
        window.withLock { window in
            if window.since.map({ now - $0 >= Self.hour }) != false { window = Window(since: now) }
            let sent = window.sent[user, default: []]
            guard sent.count < Self.most || sent.contains(entry) else { return false }
            window.sent[user, default: []].insert(entry)
            return true
        }
    }
}
