import Domain
import Synchronization
import World

/// The outcomes of attempts that could not be written to the store. When the entry is due again,
/// the relay writes the outcome and makes no second attempt. A failure of the store therefore sends
/// nothing twice.
final class Unsettled<Outcome: Sendable>: Sendable {
    private let entries = Mutex<[OutboxEntryID: (outcome: Outcome, until: Timestamp)]>([:])

    /// Keeps an outcome until its entry expires, and removes the expired ones.
    func retain(_ outcome: Outcome, of entry: OutboxEntryID, until expiresAt: Timestamp, at now: Timestamp) {
        entries.withLock { entries in
            entries = entries.filter { $1.until > now }
            entries[entry] = (outcome, expiresAt)
        }
    }

    func take(_ entry: OutboxEntryID) -> Outcome? {
        entries.withLock { $0.removeValue(forKey: entry)?.outcome }
    }
}

/// The entries of attempts that have not ended. If the store or a courier is slow, an entry may
/// become due again during its attempt. The relay then skips it.
final class InFlightEntries: Sendable {
    private let entries = Mutex<Set<OutboxEntryID>>([])

    /// Marks an entry as in flight; returns false if it is already.
    func begin(_ entry: OutboxEntryID) -> Bool { self.entries.withLock { $0.insert(entry).inserted } }

    func end(_ entry: OutboxEntryID) { self.entries.withLock { _ = $0.remove(entry) } }
}
