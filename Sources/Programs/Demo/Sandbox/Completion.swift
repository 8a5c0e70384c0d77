/// A result that is set once: the first outcome counts. It must be used on its loop only.
final class Completion<Outcome: Sendable> {
    private var outcome: Outcome?
    private var waiting: CheckedContinuation<Outcome, Never>?

    func complete(_ outcome: Outcome) {
        guard self.outcome == nil else { return }
        self.outcome = outcome
        waiting?.resume(returning: outcome)
    }

    func isComplete() async -> Outcome {
        if let outcome { return outcome }
        return await withCheckedContinuation { waiting = $0 }
    }
}
