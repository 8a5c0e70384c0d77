import Domain
import Synchronization
import World

/// Limits the messages about account events that one user gets in an hour. An attacker who can
/// cause these events must not bury the important message under hundreds of others. Each relay has
/// a separate count. The log and the audit have all of the events.
final class NotificationBudget: Sendable {
    static let most = 10
    static let hour = Duration.seconds(3600)

    private struct Window {
        var since: Instant?
        var sent: [UserID: Set<OutboxEntryID>] = [:]
    }

    private let window = Mutex(Window())

    /// Whether this message may be sent. A further attempt of a counted message is free.
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
