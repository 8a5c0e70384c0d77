import EventLoop
import HTTP

/// Runs one reply that is not available at once. It answers exactly once and before its deadline.
/// While it holds the request, it needs no task and keeps nothing of the request: the hold has all
/// that the answer needs.
final class Exchange {
    private enum State {
        /// The work runs, or the answer of an ended hold is being made.
        case working
        case holding(Hold)
        /// The hold is over. The `HeldRequestCompleter` makes the answer when its turn comes.
        case ending(Hold)
        /// Answered, or cancelled because the stream is gone.
        case done
    }

    private let owner: any ExchangeOwner
    private let stream: Int32
    private let deadline: Duration
    private let late: @Sendable () -> Response
    private var state = State.working
    private var timer: TimerID?
    /// Whether work was started and has not returned.
    private var isRunning = false
    /// Whether the running work makes the answer of a hold.
    private var isEndingHold = false
    private var hasEnded = false
    private var holdsNothing = false

    private var loop: EventLoop { owner.loop }

    /// Makes an exchange; `start` runs it.
    init(
        _ stream: Int32, of owner: any ExchangeOwner, deadline: Duration, late: @escaping @Sendable () -> Response
    ) {
        self.stream = stream
        self.owner = owner
        self.deadline = deadline
        self.late = late
    }

    func start(_ work: @escaping @Sendable () async -> Outcome) {
        run { exchange in
            let outcome = await work()
            exchange.value.came(outcome)
        }
    }

    /// Ends the hold for a server that drains: a held request is answered with the current state,
    /// and a later one is not held.
    func finishHolding() {
        holdsNothing = true
        guard case .holding(let hold) = state else { return }
        hold.wait.cancel()
        finish(hold)
    }

    /// Drops the result, because the stream is gone. Running work continues.
    func cancel() {
        if case .holding(let hold) = state {
            settle()
            hold.wait.cancel()
        } else {
            settle()
        }
        endIfOver()
    }

    private func run(_ work: @escaping @Sendable (LoopBound<Exchange>) async -> Void) {
        let bound = LoopBound(self, on: loop)
        isRunning = true
        loop.spawn {
            await work(bound)
            bound.value.returned()
        }
        // Most work that does not suspend has returned here already, and needs no timer.
        guard isRunning, case .working = state else { return }
        timer = loop.schedule(after: deadline) { [self] in
            timer = nil
            guard case .working = state else { return }
            settle()
            owner.answer(stream, late())
        }
    }

    private func came(_ outcome: Outcome) {
        guard case .working = state else {
            if case .held(let hold) = outcome { hold.wait.cancel() }
            return
        }
        switch outcome {
        case .response(let response):
            settle()
            owner.answer(stream, response)
        case .held(let hold): self.hold(hold)
        }
    }

    private func hold(_ hold: Hold) {
        stopTimer()
        state = .holding(hold)
        let bound = LoopBound(self, on: loop)
        guard !holdsNothing else {
            hold.wait.cancel()
            loop.post { bound.value.woken() }
            return
        }
        timer = loop.schedule(after: hold.duration) { [self] in
            timer = nil
            guard case .holding(let hold) = state else { return }
            hold.wait.cancel()
            finish(hold)
        }
        // The wait may fire on any thread, and before `arm` returns. So the answer is made in a
        // later turn.
        hold.wait.arm { bound.loop.post { bound.value.woken() } }
    }

    private func woken() {
        guard case .holding(let hold) = state else { return }
        finish(hold)
    }

    private func finish(_ hold: Hold) {
        stopTimer()
        state = .ending(hold)
        owner.holdEnds.add(self, of: hold.owner)
    }

    /// Makes the answer of the hold, when its turn has come. Returns false if the stream is gone:
    /// then no work starts.
    func end() -> Bool {
        guard case .ending(let hold) = state else { return false }
        state = .working
        isEndingHold = true
        run { exchange in
            let outcome = await hold.finish()
            exchange.value.came(outcome)
        }
        return true
    }

    private func returned() {
        isRunning = false
        let wasEndingHold = isEndingHold
        isEndingHold = false
        endIfOver()
        if wasEndingHold { owner.holdEnds.ended() }
    }

    private func settle() {
        stopTimer()
        state = .done
    }

    private func endIfOver() {
        guard !isRunning, !hasEnded, case .done = state else { return }
        hasEnded = true
        owner.ended()
    }

    private func stopTimer() {
        if let timer { loop.cancel(timer) }
        timer = nil
    }
}
