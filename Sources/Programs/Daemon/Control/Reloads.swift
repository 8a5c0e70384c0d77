import Relay
import Synchronization

/// Runs reloads one after the other. A signal may come while somebody waits for a reload at the
/// control socket.
final class Reloads: Sendable {
    private struct State {
        var isBusy = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())
    private let reload: @Sendable (Actor?) async -> ReloadOutcome

    init(_ reload: @escaping @Sendable (Actor?) async -> ReloadOutcome) { self.reload = reload }

    /// - Parameter actor: who asked for it; nil for a signal.
    func run(_ actor: Actor? = nil) async -> ReloadOutcome {
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                if state.isBusy { state.waiting.append(continuation) }
                defer { state.isBusy = true }
                return !state.isBusy
            }
            if isFree { continuation.resume() }
        }
        let outcome = await reload(actor)
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard !state.waiting.isEmpty else {
                state.isBusy = false
                return nil
            }
            return state.waiting.removeFirst()
        }
        next?.resume()
        return outcome
    }
}
