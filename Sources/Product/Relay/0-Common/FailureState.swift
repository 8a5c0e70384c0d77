import Synchronization

/// The outcome of the last run of repeated work, so that the relay logs only when the outcome
/// changes.
final class FailureState: Sendable {
    private let isFailing = Mutex(false)

    /// Records the outcome of this run. Returns true if it differs from the last run's.
    func changes(to isFailingNow: Bool) -> Bool {
        isFailing.withLock { isFailing in
            defer { isFailing = isFailingNow }
            return isFailing != isFailingNow
        }
    }
}
