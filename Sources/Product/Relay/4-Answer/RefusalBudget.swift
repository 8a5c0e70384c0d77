import Domain
import Synchronization
import World

/// Limits how many refused decisions are written to the audit. Each one is a script in the same
/// queue as all logins, and a phone can send any number of them. The log and the metrics have all
/// of them.
final class RefusalBudget: Sendable {
    /// The limits for one phone in one minute: different refusals, and repetitions of them.
    static let different = 30
    static let repeated = 20
    static let minute = Duration.seconds(60)
    /// The limit on phones in one minute, more than misbehave at the same time.
    static let phones = 10_000

    private struct Spent {
        var seen: Set<OperationID> = []
        var repeated = 0
    }

    private struct Window {
        var since: Instant?
        var spent: [DeviceID: Spent] = [:]
    }

    private let window = Mutex(Window())

    /// Whether this refusal may be written.
    func spend(_ operation: OperationID, of phone: DeviceID, at now: Instant) -> Bool {
        window.withLock { window in
            if window.since.map({ now - $0 >= Self.minute }) != false { window = Window(since: now) }
            guard window.spent[phone] != nil || window.spent.count < Self.phones else { return false }
            var spent = window.spent[phone] ?? Spent()
            defer { window.spent[phone] = spent }
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
