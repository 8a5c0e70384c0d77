import EventLoop
import HTTP
import Testing
import World

@testable import HTTP2

/// Many held requests that end at once.
struct HeldRequestCompleterTests {
    /// The ends under way.
    private struct Progress {
        var running = 0
        var most = 0
    }

    private let time = VirtualTime()
    private let loop: EventLoop
    private let owner: LoopBound<TestExchangeOwner>
    private let progress = Shared(Progress())

    init() {
        let loop = EventLoop.simulated(name: "sim", time: time, pick: { _ in 0 })
        self.loop = loop
        owner = loop.asCurrent { LoopBound(TestExchangeOwner(loop: loop), on: loop) }
    }

    /// The streams that were answered, in this order.
    private var answered: [Int32] { loop.asCurrent { owner.value.answers.current.map(\.stream) } }

    /// Creates a held request of a website whose end takes `duration`.
    private func hold(
        _ wait: TestWait, takes duration: Duration, of website: String = "flood", on stream: Int32 = Self.flood
    ) -> LoopBound<Exchange> {
        loop.asCurrent {
            let exchange = Exchange(stream, of: owner.value, deadline: .seconds(5), late: { Response(status: 503) })
            exchange.start { [progress, loop] in
                .held(
                    Hold(duration: .seconds(30), owner: website, wait: wait) {
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

    /// The stream of all requests of one website, and that of another website.
    private static let flood: Int32 = 1
    private static let other: Int32 = 3

    private func runAll() {
        while true {
            while loop.turn() {}
            guard loop.nextDeadline != nil else { return }
            time.pass(.milliseconds(1))
        }
    }

    @Test func holdsEndInSmallBatchesPerOwner() {
        let waits = (0..<1000).map { _ in TestWait() }
        let exchanges = waits.map { hold($0, takes: .milliseconds(1)) }
        let other = TestWait()
        let last = hold(other, takes: .milliseconds(1), of: "other", on: Self.other)
        for wait in waits { wait.fire() }
        other.fire()
        runAll()
        withExtendedLifetime((exchanges, last)) {}
        #expect(progress.current.most == HeldRequestCompleter.atOnce)
        #expect(answered.count == 1001)
        // The other owner was in the second batch, although the whole flood was added earlier.
        #expect((answered.firstIndex(of: Self.other) ?? .max) <= 2 * HeldRequestCompleter.atOnce)
    }

    @Test func turnCompletesOnlyOneBatch() {
        let waits = (0..<1000).map { _ in TestWait() }
        let exchanges = waits.map { hold($0, takes: .zero) }
        for wait in waits { wait.fire() }
        var before = 0
        while loop.turn() {
            let answered = self.answered.count
            #expect(answered - before <= HeldRequestCompleter.atOnce)
            before = answered
        }
        withExtendedLifetime(exchanges) {}
        #expect(answered.count == 1000)
    }

    @Test func cancelledHoldCostsNothing() {
        let waits = (0..<200).map { _ in TestWait() }
        let exchanges = waits.map { hold($0, takes: .milliseconds(1)) }
        for wait in waits { wait.fire() }
        while loop.turn() {}
        loop.asCurrent { for exchange in exchanges.dropFirst(HeldRequestCompleter.atOnce) { exchange.value.cancel() } }
        runAll()
        #expect(answered.count == HeldRequestCompleter.atOnce)
        // The cancelled ends freed their places.
        let wait = TestWait()
        let next = hold(wait, takes: .zero, of: "other", on: Self.other)
        wait.fire()
        runAll()
        withExtendedLifetime(next) {}
        #expect(answered.last == Self.other)
    }
}
