import EventLoop
import HTTP
import Testing
import World

@testable import HTTP2

/// A clock that moves only when the test moves it.
final class VirtualTime: TimeSource {
    private let nanoseconds = Shared<Int64>(0)

    func now() -> Timestamp { Timestamp(milliseconds: nanoseconds.current / 1_000_000) }
    func instant() -> Instant { Instant(nanoseconds: nanoseconds.current) }
    func pass(_ duration: Duration) { nanoseconds.withLock { $0 += duration.wholeNanoseconds } }
}

/// A wait that counts its calls and ends when the test fires it.
final class TestWait: Wait {
    private let wake = Shared<(@Sendable () -> Void)?>(nil)
    let armed = Shared(0)
    let cancelled = Shared(0)
    private let atOnce: Bool

    init(atOnce: Bool = false) { self.atOnce = atOnce }

    func arm(_ wake: @escaping @Sendable () -> Void) {
        self.wake.withLock { $0 = wake }
        armed.withLock { $0 += 1 }
        if atOnce { wake() }
    }

    func cancel() { cancelled.withLock { $0 += 1 } }
    func fire() { wake.current?() }
}

/// An owner that records what its exchanges report.
final class TestExchangeOwner: ExchangeOwner {
    let loop: EventLoop
    let holdEnds: HeldRequestCompleter
    let answers = Shared<[(stream: Int32, status: Int)]>([])
    let ends = Shared(0)

    init(loop: EventLoop) {
        self.loop = loop
        holdEnds = HeldRequestCompleter(loop: loop)
    }

    func answer(_ stream: Int32, _ response: Response) { answers.withLock { $0.append((stream, response.status)) } }
    func ended() { ends.withLock { $0 += 1 } }
}

/// An exchange on a simulated loop, with its results.
private final class Bench: Sendable {
    let time = VirtualTime()
    let loop: EventLoop
    private let owner: LoopBound<TestExchangeOwner>
    var answers: [Int] { loop.asCurrent { owner.value.answers.current.map(\.status) } }
    var ends: Int { loop.asCurrent { owner.value.ends.current } }

    init() {
        let loop = EventLoop.simulated(name: "sim", time: time, pick: { _ in 0 })
        self.loop = loop
        owner = loop.asCurrent { LoopBound(TestExchangeOwner(loop: loop), on: loop) }
    }

    @discardableResult
    func start(_ work: @escaping @Sendable () async -> Outcome) -> LoopBound<Exchange> {
        loop.asCurrent {
            let exchange = Exchange(1, of: owner.value, deadline: .seconds(5), late: { Response(status: 503) })
            exchange.start(work)
            return LoopBound(exchange, on: loop)
        }
    }

    func run() { while loop.turn() {} }

    func pass(_ duration: Duration) {
        run()
        time.pass(duration)
        run()
    }

    func cancel(_ exchange: LoopBound<Exchange>) { loop.asCurrent { exchange.value.cancel() } }
}

struct ExchangeTests {
    private let bench = Bench()
    private let ok = Outcome.response(Response(status: 200))

    @Test func synchronousWorkAnswersWithoutATimer() {
        bench.start { [ok] in ok }
        #expect(bench.answers == [200])
        #expect(bench.ends == 1)
        #expect(bench.loop.nextDeadline == nil)
    }

    @Test func timelyWorkAnswersOnce() {
        bench.start { [bench, ok] in
            await bench.loop.sleep(for: .seconds(3))
            return ok
        }
        bench.pass(.seconds(3))
        bench.pass(.seconds(10))
        #expect(bench.answers == [200])
        #expect(bench.ends == 1)
    }

    @Test func lateWorkIsReplacedByATimeoutAnswer() {
        bench.start { [bench, ok] in
            await bench.loop.sleep(for: .seconds(8))
            return ok
        }
        bench.pass(.seconds(5))
        #expect(bench.answers == [503])
        #expect(bench.ends == 0, "the work still runs")
        bench.pass(.seconds(3))
        #expect(bench.answers == [503])
        #expect(bench.ends == 1)
    }

    private func held(_ wait: TestWait, finish: @escaping @Sendable () async -> Response) -> Outcome {
        .held(Hold(duration: .seconds(30), wait: wait) { .response(await finish()) })
    }

    @Test func holdEndsWhenItsEventFires() {
        let wait = TestWait()
        let outcome = held(wait) { Response(status: 201) }
        bench.start { outcome }
        // The deadline of the work is shorter than this. A hold has its own.
        bench.pass(.seconds(20))
        #expect(bench.answers == [])
        wait.fire()
        wait.fire()
        bench.run()
        bench.pass(.seconds(60))
        #expect(bench.answers == [201])
        #expect(bench.ends == 1)
        #expect(wait.cancelled.current == 0)
    }

    @Test func holdMayBeRenewed() {
        let (wait, next) = (TestWait(), TestWait())
        let again = held(next) { Response(status: 201) }
        let outcome = Outcome.held(Hold(duration: .seconds(30), wait: wait) { again })
        bench.start { outcome }
        bench.pass(.seconds(20))
        wait.fire()
        bench.pass(.seconds(20))
        #expect(bench.answers == [], "it has another 30 seconds")
        next.fire()
        bench.run()
        #expect(bench.answers == [201])
        #expect(bench.ends == 1)
    }

    @Test func eventBeforeArmingEndsTheHold() {
        let wait = TestWait(atOnce: true)
        let outcome = held(wait) { Response(status: 201) }
        bench.start { outcome }
        bench.run()
        #expect(bench.answers == [201])
    }

    @Test func holdEndsAtItsTimeout() {
        let wait = TestWait()
        let outcome = held(wait) { Response(status: 202) }
        bench.start { outcome }
        bench.pass(.seconds(30))
        #expect(bench.answers == [202])
        #expect(wait.cancelled.current == 1)
        wait.fire()
        bench.run()
        #expect(bench.answers == [202])
    }

    @Test func finishingAHoldHasADeadline() {
        let wait = TestWait()
        let outcome = held(wait) { [bench] in
            await bench.loop.sleep(for: .seconds(6))
            return Response(status: 200)
        }
        bench.start { outcome }
        wait.fire()
        bench.pass(.seconds(5))
        #expect(bench.answers == [503])
        bench.pass(.seconds(5))
        #expect(bench.answers == [503])
        #expect(bench.ends == 1)
    }

    @Test func holdEndsAtShutdown() {
        let wait = TestWait()
        let outcome = held(wait) { Response(status: 200) }
        let exchange = bench.start { outcome }
        bench.loop.asCurrent { exchange.value.finishHolding() }
        wait.fire()
        bench.pass(.seconds(60))
        #expect(wait.cancelled.current == 1)
        #expect(bench.answers == [200])
        #expect(bench.ends == 1)
    }

    @Test func holdAfterShutdownEndsAtOnce() {
        let wait = TestWait()
        let outcome = held(wait) { Response(status: 200) }
        let exchange = bench.start { [bench] in
            await bench.loop.sleep(for: .seconds(1))
            return outcome
        }
        bench.loop.asCurrent { exchange.value.finishHolding() }
        #expect(bench.answers == [])
        bench.pass(.seconds(1))
        #expect(wait.armed.current == 0)
        #expect(wait.cancelled.current == 1)
        #expect(bench.answers == [200])
        #expect(bench.ends == 1)
    }

    @Test func closedStreamCancelsTheHold() {
        let wait = TestWait()
        let outcome = held(wait) { Response(status: 200) }
        let exchange = bench.start { outcome }
        bench.cancel(exchange)
        bench.cancel(exchange)
        wait.fire()
        bench.pass(.seconds(60))
        #expect(wait.cancelled.current == 1)
        #expect(bench.answers == [])
        #expect(bench.ends == 1)
    }

    @Test func closedStreamLetsRunningWorkFinish() {
        let wait = TestWait()
        let outcome = held(wait) { Response(status: 200) }
        let exchange = bench.start { [bench] in
            await bench.loop.sleep(for: .seconds(1))
            return outcome
        }
        bench.cancel(exchange)
        #expect(bench.ends == 0)
        bench.pass(.seconds(1))
        #expect(bench.answers == [])
        #expect(bench.ends == 1)
        // The wait will never be armed, so it is cancelled.
        #expect(wait.armed.current == 0)
        #expect(wait.cancelled.current == 1)
    }
}
