import Synchronization
import Testing
import World

@testable import EventLoop

/// A clock that moves only when the test moves it.
final class VirtualTime: TimeSource {
    private let nanoseconds = Mutex<Int64>(0)

    func now() -> Timestamp { Timestamp(milliseconds: nanoseconds.withLock { $0 / 1_000_000 }) }
    func instant() -> Instant { Instant(nanoseconds: nanoseconds.withLock { $0 }) }
    func move(to instant: Instant) { nanoseconds.withLock { $0 = max($0, instant.nanoseconds) } }
}

struct SimulatedLoopTests {
    /// Returns the trace of one seed: two loops post work to each other, sleep and race.
    private func trace(seed: UInt64) -> [String] {
        let time = VirtualTime()
        let random = Shared(SplitMix(state: seed))
        let pick: (Int) -> Int = { count in random.withLock { random in Int.random(in: 0..<count, using: &random) } }
        let loops = ["a", "b"].map { EventLoop.simulated(name: $0, time: time, pick: pick) }
        let log = Shared<[String]>([])
        for task in 0..<4 {
            let (home, other) = (loops[task % 2], loops[(task + 1) % 2])
            home.post {
                home.spawn {
                    for step in 0..<5 {
                        precondition(EventLoop.current === home)
                        await home.sleep(for: .milliseconds(Int64(task + step) % 3))
                        let there = await other.perform { EventLoop.current?.name ?? "nowhere" }
                        precondition(there == other.name && EventLoop.current === home)
                        log.withLock { $0.append("\(task).\(step)@\(time.instant().nanoseconds / 1_000_000)") }
                    }
                }
            }
        }
        while true {
            if loops.map({ $0.turn() }).contains(true) { continue }
            guard let next = loops.compactMap(\.nextDeadline).min() else { break }
            time.move(to: next)
        }
        return log.withLock { $0 }
    }

    @Test(arguments: 0..<50) func sameSeedGivesTheSameTrace(seed: UInt64) {
        let first = trace(seed: seed)
        #expect(first.count == 20)
        #expect(trace(seed: seed) == first)
    }

    @Test func differentSeedsGiveDifferentTraces() {
        #expect(Set((0..<50).map { trace(seed: $0) }).count > 10)
    }

    @Test func simulatedTurnRunsOneItem() {
        let loop = EventLoop.simulated(name: "sim", time: VirtualTime(), pick: { _ in 0 })
        let seen = Shared<[Int]>([])
        for number in 0..<3 {
            loop.post {
                precondition(EventLoop.current === loop)
                seen.withLock { $0.append(number) }
            }
        }
        #expect(loop.turn())
        #expect(seen.withLock { $0 } == [0])
        #expect(EventLoop.current == nil)
        let further = [loop.turn(), loop.turn(), loop.turn()]
        #expect(further == [true, true, false])
        #expect(seen.withLock { $0 } == [0, 1, 2])
    }

    @Test func timeIsConstantWithinATurn() {
        let time = VirtualTime()
        let loop = EventLoop.simulated(name: "sim", time: time, pick: { _ in 0 })
        let seen = Shared<[Int64]>([])
        for turn in 1...2 {
            loop.post {
                for step in 1...2 {
                    seen.withLock { $0.append(loop.now.nanoseconds) }
                    time.move(to: Instant(nanoseconds: Int64(turn * 10 + step)))
                }
            }
        }
        let turns = [loop.turn(), loop.turn()]
        #expect(turns == [true, true])
        #expect(seen.withLock { $0 } == [0, 0, 12, 12])
    }

    @Test func timersWaitForVirtualTimeAndCanStillBeCancelledWhenDue() {
        let time = VirtualTime()
        let loop = EventLoop.simulated(name: "sim", time: time, pick: { _ in 0 })
        let fired = Shared<[String]>([])
        let second = loop.asCurrent {
            loop.schedule(after: .seconds(1)) { fired.withLock { $0.append("first") } }
            return loop.schedule(after: .seconds(1)) { fired.withLock { $0.append("second") } }
        }
        #expect(!loop.turn())
        #expect(loop.nextDeadline == Instant(nanoseconds: 1_000_000_000))
        time.move(to: Instant(nanoseconds: 1_000_000_000))
        #expect(loop.turn())
        loop.asCurrent { loop.cancel(second) }
        #expect(!loop.turn())
        #expect(fired.withLock { $0 } == ["first"])
        #expect(loop.nextDeadline == nil)
    }
}
