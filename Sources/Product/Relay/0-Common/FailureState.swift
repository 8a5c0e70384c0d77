import Synchronization

/// Whether repeated work failed at its last run, so that only a change of that is logged.
final class FailureState: Sendable {
    private let isFailing = Mutex(false)

    /// Notes how this run went. Returns true if the last run went otherwise.
    func changes(to isFailingNow: Bool) -> Bool {
        isFailing.withLock { isFailing in
            defer { isFailing = isFailingNow }
            return isFailing != isFailingNow
        }
    }
}
