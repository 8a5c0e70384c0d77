import Domain
import Synchronization
import World

/// Limits how many refusals of phones are written to the audit. Each one is a script in the same
/// queue as all logins, and a phone can cause any number of them. The log and the metrics have all
/// of them. The limits are for each source: a phone or, before it is bound, its user.
final class RefusalBudget<Source: Hashable & Sendable>: Sendable {
    /// The limits for one source in one minute: different refusals, and repetitions of them.
    static var different: Int { 30 }
    static var repeated: Int { 20 }
    static var minute: Duration { .seconds(60) }
    /// The limit on sources in one minute, more than misbehave at the same time.
    static var sources: Int { 10_000 }

    private struct Spent {
        var seen: Set<OperationID> = []
        var repeated = 0
    }

    private struct Window {
        var since: Instant?
        var spent: [Source: Spent] = [:]
    }

    private let window = Mutex(Window())

    /// Whether this refusal may be written.
    func spend(_ operation: OperationID, of source: Source, at now: Instant) -> Bool {
        window.withLock { window in
            if window.since.map({ now - $0 >= Self.minute }) != false { window = Window(since: now) }
            guard window.spent[source] != nil || window.spent.count < Self.sources else { return false }
            var spent = window.spent[source] ?? Spent()
            defer { window.spent[source] = spent }
            if spent.seen.contains(operation) {
                guard spent.repeated < Self.repeated else { return false }
                spent.repeated += 1
            } else {
                guard spent.seen.count < Self.different else { return false }
                spent.seen.insert(operation)
            }
            return true
        }
    }
}
