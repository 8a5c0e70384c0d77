import EventLoop
import HTTP

/// Runs one reply that is not there at once: answers once, in time, and holds without a task while it waits.
final class Exchange {
    private enum State {
        /// The work runs, or the answer to a hold is being made.
        case working
        case holding(Hold)
        /// The hold is over; its answer is made when it is its turn.
        case ending(Hold)
        /// Answered, or nobody wants the answer any more.
        case done
    }

    private let loop: EventLoop
    private let holdEnds: HeldRequestCompleter
    private let deadline: Duration
    private let late: Response
    private let answer: (Response) -> Void
    private let ended: () -> Void
    private var state = State.working
    private var timer: TimerID?
    /// Work that has been started and has not come back.
    private var isRunning = false
    /// The work that runs ends a hold.
    private var isEndingHold = false
    private var hasEnded = false
    private var holdsNothing = false

    /// `answer` is called at most once; `ended` once, when nothing of this runs any more.
    init(
        loop: EventLoop, holdEnds: HeldRequestCompleter, deadline: Duration, late: Response,
        answer: @escaping (Response) -> Void,
        ended: @escaping () -> Void
    ) {
        self.loop = loop
        self.holdEnds = holdEnds
        self.deadline = deadline
        self.late = late
        self.answer = answer
        self.ended = ended
    }

    func start(_ work: @escaping @Sendable () async -> Outcome) {
        run { exchange in
            let outcome = await work()
            exchange.value.came(outcome)
        }
    }

    /// The server drains: what is held is answered with what there is now, and from here on nothing is held.
    func finishHolding() {
        holdsNothing = true
        guard case .holding(let hold) = state else { return }
        hold.wait.cancel()
        finish(hold)
    }

    /// The stream has gone: what runs is left to run, its result is dropped.
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
        // Most work that awaits nothing has its answer here already, and needs no timer.
        guard isRunning, case .working = state else { return }
        timer = loop.schedule(after: deadline) { [self] in
            timer = nil
            guard case .working = state else { return }
            settle()
            answer(late)
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
            answer(response)
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
            guard case .holding = state else { return }
            hold.wait.cancel()
            finish(hold)
        }
        // From any thread, and perhaps before `arm` returns: the turn it is answered on is a later one.
        hold.wait.arm { bound.loop.post { bound.value.woken() } }
    }

    private func woken() {
        guard case .holding(let hold) = state else { return }
        finish(hold)
    }

    private func finish(_ hold: Hold) {
        stopTimer()
        state = .ending(hold)
        holdEnds.add(self, of: hold.owner)
    }

    /// It is the turn of this hold's end. False where nobody wants the answer any more: then nothing runs.
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
        if wasEndingHold { holdEnds.ended() }
    }

    private func settle() {
        stopTimer()
        state = .done
    }

    private func endIfOver() {
        guard !isRunning, !hasEnded, case .done = state else { return }
        hasEnded = true
        ended()
    }

    private func stopTimer() {
        if let timer { loop.cancel(timer) }
        timer = nil
    }
}
