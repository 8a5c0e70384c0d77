import Synchronization

/// The stop of the relay, for the commands that run at the control socket meanwhile.
///
/// Invariant: a change that has begun ends and is answered, and no further one begins. So a caller learns
/// what was done, and the stop waits for one change of each command at most.
final class ControlStop: Sendable {
    private let state = Atomic(false)

    var hasBegun: Bool { state.load(ordering: .acquiring) }

    func begin() { state.store(true, ordering: .releasing) }
}
