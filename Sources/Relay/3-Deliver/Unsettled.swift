import Domain
import Synchronization
import World

/// What became of pushes that could not be written down when it was known. It is written when their turn in the outbox
/// comes again: nothing is sent a second time because the store was away.
final class Unsettled: Sendable {
    struct Entry: Sendable {
        let delivery: Delivery
        let settlement: Settlement
        let isOurFault: Bool
        /// It may be written already: a store that goes away at a commit does not say.
        let operation: OperationID
    }

    private let entries = Mutex<[ErrandID: Entry]>([:])

    /// Those whose challenges are over are nobody's any more.
    func keep(_ entry: Entry, at now: Timestamp) {
        entries.withLock { entries in
            entries = entries.filter { $1.delivery.push.expiresAt > now }
            entries[entry.settlement.errand] = entry
        }
    }

    func take(_ errand: ErrandID) -> Entry? { entries.withLock { $0.removeValue(forKey: errand) } }
}
