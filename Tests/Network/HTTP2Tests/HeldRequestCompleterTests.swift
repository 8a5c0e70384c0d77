import EventLoop
import HTTP
import Testing
import World

@testable import HTTP2

/// Many held requests that end at once.
struct HeldRequestCompleterTests {
    /// The ends under way, and the order of the answers.
    private struct Progress {
        var running = 0
        var most = 0
        var answered: [String] = []
    }

    private let time = VirtualTime()
    private let loop: EventLoop
    private let holdEnds: LoopBound<HeldRequestCompleter>
    private let progress = Shared(Progress())

    init() {
        let loop = EventLoop.simulated(name: "sim", time: time, pick: { _ in 0 })
        self.loop = loop
        holdEnds = loop.asCurrent { LoopBound(HeldRequestCompleter(loop: loop), on: loop) }
    }

    /// Creates a held request whose end takes `duration`.
    private func hold(_ owner: String, _ wait: TestWait, takes duration: Duration) -> LoopBound<Exchange> {
        loop.asCurrent {
            let exchange = Exchange(
                loop: loop, holdEnds: holdEnds.value, deadline: .seconds(5), late: { Response(status: 503) },
                answer: { [progress] _ in progress.withLock { $0.answered.append(owner) } }, ended: {})
            exchange.start { [progress, loop] in
                .held(
                    Hold(duration: .seconds(30), owner: owner, wait: wait) {
                        progress.withLock {
                            $0.running += 1
                            $0.most = max($0.most, $0.running)
                        }
                        if duration > .zero { await loop.sleep(for: duration) }
                        progress.withLock { $0.running -= 1 }
                        return .response(Response(status: 200))
                    })
            }
            return LoopBound(exchange, on: loop)
        }
    }

    private func runAll() {
        while true {
            while loop.turn() {}
            guard loop.nextDeadline != nil else { return }
            time.pass(.milliseconds(1))
        }
    }

    @Test func holdsEndInSmallBatchesPerOwner() {
        let waits = (0..<1000).map { _ in TestWait() }
        let exchanges = waits.map { hold("flood", $0, takes: .milliseconds(1)) }
        let other = TestWait()
        let last = hold("other", other, takes: .milliseconds(1))
        for wait in waits { wait.fire() }
        other.fire()
        runAll()
        withExtendedLifetime((exchanges, last)) {}
        let progress = progress.current
        #expect(progress.most == HeldRequestCompleter.atOnce)
        #expect(progress.answered.count == 1001)
        // The other owner was in the second batch, although the whole flood was added earlier.
        #expect((progress.answered.firstIndex(of: "other") ?? .max) <= 2 * HeldRequestCompleter.atOnce)
    }

    @Test func turnCompletesOnlyOneBatch() {
        let waits = (0..<1000).map { _ in TestWait() }
        let exchanges = waits.map { hold("flood", $0, takes: .zero) }
        for wait in waits { wait.fire() }
        var before = 0
        while loop.turn() {
            let answered = progress.current.answered.count
            #expect(answered - before <= HeldRequestCompleter.atOnce)
            before = answered
        }
        withExtendedLifetime(exchanges) {}
        #expect(progress.current.answered.count == 1000)
    }

    @Test func cancelledHoldCostsNothing() {
        let waits = (0..<200).map { _ in TestWait() }
        let exchanges = waits.map { hold("flood", $0, takes: .milliseconds(1)) }
        for wait in waits { wait.fire() }
        while loop.turn() {}
        loop.asCurrent { for exchange in exchanges.dropFirst(HeldRequestCompleter.atOnce) { exchange.value.cancel() } }
        runAll()
        #expect(progress.current.answered.count == HeldRequestCompleter.atOnce)
        // The cancelled ends freed their places.
        let wait = TestWait()
        let next = hold("other", wait, takes: .zero)
        wait.fire()
        runAll()
        withExtendedLifetime(next) {}
        #expect(progress.current.answered.last == "other")
    }
}
