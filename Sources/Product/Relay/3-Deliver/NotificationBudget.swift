import Domain
import Synchronization
import World

/// Limits the messages about each kind of account event that one user gets in an hour. An attacker
/// who can cause events of one kind must neither bury the important message under hundreds of
/// others, nor use up its place: so each kind has a count of its own. Each relay counts separately.
/// The log and the audit have all of the events.
final class NotificationBudget: Sendable {
    static let most = 3
    static let hour = Duration.seconds(3600)

    private struct Subject: Hashable {
        let user: UserID
        let event: AccountEvent
    }

    private struct Window {
        var since: Instant?
        var sent: [Subject: Set<OutboxEntryID>] = [:]
    }

    private let window = Mutex(Window())

    /// Whether this message may be sent. A further attempt of a counted message is free.
    func spend(_ entry: OutboxEntryID, about event: AccountEvent, of user: UserID, at now: Instant) -> Bool {
        let subject = Subject(user: user, event: event)
        return window.withLock { window in
            if window.since.map({ now - $0 >= Self.hour }) != false { window = Window(since: now) }
            let sent = window.sent[subject, default: []]
            guard sent.count < Self.most || sent.contains(entry) else { return false }
            window.sent[subject, default: []].insert(entry)
            return true
        }
    }
}
