import Domain
import Synchronization
import World

/// What is known of errands that have left and could not be written down. When their turn in the outbox comes again, it
/// is written: nothing is sent a second time because the store was away.
final class Unsettled<Entry: Sendable>: Sendable {
    private let entries = Mutex<[OutboxEntryID: (entry: Entry, until: Timestamp)]>([:])

    /// Those that expired are nobody's any more.
    func keep(_ entry: Entry, of errand: OutboxEntryID, until expiresAt: Timestamp, at now: Timestamp) {
        entries.withLock { entries in
            entries = entries.filter { $1.until > now }
            entries[errand] = (entry, expiresAt)
        }
    }

    func take(_ entry: OutboxEntryID) -> Entry? { entries.withLock { $0.removeValue(forKey: entry)?.entry } }
}

/// Errands that have left and of which nobody knows yet what becomes: when their turn comes again, because the store or
/// whoever carries them is slow, they are left alone.
final class InFlightEntries: Sendable {
    private let entries = Mutex<Set<OutboxEntryID>>([])

    /// False if it is under way already.
    func begin(_ entry: OutboxEntryID) -> Bool { self.entries.withLock { $0.insert(entry).inserted } }

    func end(_ entry: OutboxEntryID) { self.entries.withLock { _ = $0.remove(entry) } }
}
