import Domain
import Synchronization
import World

/// Pushes that have left and of which the outbox does not say so yet: those that are under way, and those of which it is
/// known what became of them but could not be written down. When their turn in the outbox comes again, the first are
/// left alone and the second are written: nothing is sent a second time because the store was slow or away.
final class Unsettled: Sendable {
    struct Entry: Sendable {
        let delivery: Delivery
        let settlement: Settlement
        let isOurFault: Bool
        /// It may be written already: a store that goes away at a commit does not say.
        let operation: OperationID
    }

    private let entries = Mutex<[ErrandID: Entry]>([:])
    private let underWay = Mutex<Set<ErrandID>>([])

    /// False if it is under way already.
    func begin(_ errand: ErrandID) -> Bool { underWay.withLock { $0.insert(errand).inserted } }

    func end(_ errand: ErrandID) { underWay.withLock { _ = $0.remove(errand) } }

    /// Those whose challenges are over are nobody's any more.
    func keep(_ entry: Entry, at now: Timestamp) {
        entries.withLock { entries in
            entries = entries.filter { $1.delivery.push.expiresAt > now }
            entries[entry.settlement.errand] = entry
        }
    }

    func take(_ errand: ErrandID) -> Entry? { entries.withLock { $0.removeValue(forKey: errand) } }
}
