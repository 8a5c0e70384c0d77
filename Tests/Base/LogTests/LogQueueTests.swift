import Synchronization
import Testing
import World

@testable import Log

private func line(_ text: String) -> [UInt8] { Array("\(text)\n".utf8) }

@Suite struct LogQueueTests {
    @Test func linesKeepTheirOrder() throws {
        var queue = LogQueue(LogQueue.Bounds(lines: 4000))
        var expected: [UInt8] = []
        var taken: [UInt8] = []
        for round in 0..<100 {
            for number in 0..<30 {
                let one = line("\(round) \(number)")
                expected += one
                queue.add(one, .info)
            }
            // Some lines remain, so that the queue is never empty.
            for _ in 0..<(round == 99 ? 10_000 : 2) {
                guard let batch = queue.take(about: 64) else { break }
                #expect(batch.bytes.count <= 64)
                taken += batch.bytes
                queue.finish(batch, written: batch.bytes.count)
            }
        }
        #expect(taken == expected)
        #expect(queue.lines == 0 && queue.bytes == 0)
        #expect(LogLevel.allCases.allSatisfy { queue.dropped($0) == 0 })
    }

    @Test func queuedLinesAreBounded() {
        var queue = LogQueue(LogQueue.Bounds(lines: 16, bytes: 1 << 20))
        for level in LogLevel.allCases {
            for _ in 0..<40 { queue.add(line("x"), level) }
        }
        // Debug lines filled the space that they share with info. Notices and warnings had reserved
        // space.
        #expect(LogLevel.allCases.map { queue.dropped($0) } == [28, 40, 38, 38, 40])
        #expect(queue.lines == 16)
    }

    @Test func queuedBytesAreBounded() {
        var queue = LogQueue(LogQueue.Bounds(lines: 1000, bytes: 1000))
        let long = [UInt8](repeating: 0x78, count: 100)
        for _ in 0..<20 { queue.add(long, .info) }
        #expect(queue.bytes == 700 && queue.dropped(.info) == 13)
        for _ in 0..<20 { queue.add(long, .error) }
        #expect(queue.bytes == 1000 && queue.dropped(.error) == 17)
    }

    @Test func linesBeingWrittenCountAgainstTheLimit() throws {
        var queue = LogQueue(LogQueue.Bounds(lines: 4, bytes: 1 << 20))
        for _ in 0..<4 { queue.add(line("x"), .error) }
        let taken = queue.take(about: 1 << 20)
        let batch = try #require(taken)
        let early = queue.add(line("y"), .error)
        #expect(!early)
        queue.finish(batch, written: batch.bytes.count)
        let late = queue.add(line("y"), .error)
        #expect(late)
        #expect(queue.dropped(.error) == 1)
    }

    @Test func unwrittenLinesAreCountedAsDropped() throws {
        var queue = LogQueue(LogQueue.Bounds(lines: 100))
        for level in [LogLevel.info, .info, .error] { queue.add(line("1234567"), level) }
        let taken = queue.take(about: 1 << 20)
        let batch = try #require(taken)
        // The first line and half of the second were written.
        queue.finish(batch, written: 12)
        #expect(queue.dropped(.info) == 1 && queue.dropped(.error) == 1)
        let unsaid = queue.takeUnreported()
        #expect(unsaid.map(\.level) == [.info, .error] && unsaid.map(\.count) == [1, 1])
        let nothing = queue.takeUnreported()
        #expect(nothing.isEmpty)
        queue.requeue(unsaid)
        let again = queue.takeUnreported()
        #expect(again.map(\.count) == [1, 1])
    }

    /// A line that is longer than a batch is still written.
    @Test func longLineFormsItsOwnBatch() {
        var queue = LogQueue(LogQueue.Bounds(lines: 100))
        let long = [UInt8](repeating: 0x78, count: 5000)
        queue.add(line("short"), .info)
        queue.add(long, .info)
        let first = queue.take(about: 100)
        let second = queue.take(about: 100)
        #expect(first?.bytes == line("short"))
        #expect(second?.bytes == long)
    }
}

@Suite struct QueuedSinkTests {
    private struct Clock: TimeSource {
        func now() -> Timestamp { Timestamp(milliseconds: 1_795_249_354_123) }
        func instant() -> Instant { Instant(nanoseconds: 0) }
    }

    /// A writer that runs only when the test calls it, and a reader whose capacity the test sets.
    private final class Stand: Sendable {
        private let work = Mutex<[@Sendable () -> Void]>([])
        private let taken = Mutex<(text: [UInt8], takes: Bool)>(([], true))

        var text: String { String(decoding: taken.withLock { $0.text }, as: UTF8.self) }
        func take(_ takes: Bool) { taken.withLock { $0.takes = takes } }

        func post(_ piece: @escaping @Sendable () -> Void) { work.withLock { $0.append(piece) } }

        /// Runs the queued work and returns the number of tasks.
        func run() -> Int {
            let pieces = work.withLock { work in
                defer { work = [] }
                return work
            }
            for piece in pieces { piece() }
            return pieces.count
        }

        func output(_ bytes: [UInt8]) -> Int {
            taken.withLock { taken in
                guard taken.takes else { return 0 }
                taken.text += bytes
                return bytes.count
            }
        }
    }

    private func sink(_ stand: Stand, lines: Int, _ format: LogFormat = .logfmt) -> QueuedSink {
        QueuedSink(
            bounds: LogQueue.Bounds(lines: lines), format: format, time: Clock(), output: { stand.output($0) },
            run: { stand.post($0) })
    }

    @Test func concurrentLoggingStartsOneWriter() {
        let stand = Stand()
        let sink = sink(stand, lines: 100)
        let log = Log(time: Clock(), sink: sink)
        for _ in 0..<50 { log.info("a") }
        #expect(stand.text == "")
        #expect(sink.queued == 50)
        #expect(stand.run() == 1)
        #expect(stand.text.split(separator: "\n").count == 50)
        #expect(sink.queued == 0)
        log.info("b")
        #expect(stand.run() == 1)
    }

    @Test func droppedLinesAreReportedWithTheNextBatch() {
        let stand = Stand()
        let sink = sink(stand, lines: 8)
        let log = Log(time: Clock(), sink: sink)
        for _ in 0..<30 { log.info("a") }
        for _ in 0..<5 { log.error("b") }
        _ = stand.run()
        let lines = stand.text.split(separator: "\n")
        #expect(lines.count { $0.hasSuffix("event=a") } == 6)
        #expect(lines.count { $0.hasSuffix("event=b") } == 2)
        let head = "time=2026-11-21T08:22:34.123Z level=warning event=log.dropped"
        #expect(lines.suffix(2) == ["\(head) kind=info count=24", "\(head) kind=error count=3"])
        #expect(log.dropped(.info) == 24 && log.dropped(.error) == 3)
        // Dropped lines are reported once.
        log.info("c")
        _ = stand.run()
        #expect(stand.text.split(separator: "\n").count == lines.count + 1)
    }

    @Test func writeFailureIsReportedAfterRecovery() {
        let stand = Stand()
        let log = Log(time: Clock(), sink: sink(stand, lines: 100, .json))
        stand.take(false)
        for _ in 0..<7 { log.info("a") }
        _ = stand.run()
        #expect(stand.text == "" && log.dropped(.info) == 7)
        stand.take(true)
        log.notice("b")
        _ = stand.run()
        #expect(stand.text.hasSuffix(#""level":"warning","event":"log.dropped","kind":"info","count":7}"# + "\n"))
    }

    /// Records the calls of a sink to its writer, in order.
    private final class Steps: Sendable {
        private let kept = Mutex<[String]>([])
        private let during = Mutex<(@Sendable () -> Void)?>(nil)

        var all: [String] { kept.withLock { $0 } }
        func add(_ step: String) { kept.withLock { $0.append(step) } }
        /// Sets the work that runs while the writer waits for more lines.
        func whileGathering(_ body: @escaping @Sendable () -> Void) { during.withLock { $0 = body } }

        func sink(_ bounds: LogQueue.Bounds = LogQueue.Bounds()) -> QueuedSink {
            QueuedSink(
                bounds: bounds, format: .logfmt, time: Clock(),
                output: { bytes in
                    self.add("write \(bytes.count { $0 == UInt8(ascii: "\n") })")
                    return bytes.count
                },
                run: { $0() },
                gather: {
                    self.add("gather")
                    self.during.withLock { $0.take() }?()
                },
                hurry: { self.add("hurry") })
        }
    }

    @Test func linesWaitForOthersToBeWrittenTogether() {
        let steps = Steps()
        let log = Log(time: Clock(), sink: steps.sink())
        steps.whileGathering { for _ in 0..<4 { log.info("b") } }
        log.info("a")
        #expect(steps.all == ["gather", "write 5"])
    }

    @Test func noticeEndsTheWaitOnce() {
        let steps = Steps()
        let log = Log(time: Clock(), sink: steps.sink())
        steps.whileGathering {
            log.info("b")
            log.notice("c")
            log.error("d")
        }
        log.info("a")
        #expect(steps.all == ["gather", "hurry", "write 4"])
    }

    @Test func noticeByItselfDoesNotWait() {
        let steps = Steps()
        Log(time: Clock(), sink: steps.sink()).warning("a")
        #expect(steps.all == ["hurry", "gather", "write 1"])
    }

    @Test func halfOfASmallQueueEndsTheWait() {
        let steps = Steps()
        let log = Log(time: Clock(), sink: steps.sink(LogQueue.Bounds(lines: 8)))
        steps.whileGathering { for _ in 0..<4 { log.info("b") } }
        log.info("a")
        #expect(steps.all == ["gather", "hurry", "write 5"])
    }

    @Test func linesForOneWriteEndTheWait() {
        let steps = Steps()
        let sink = steps.sink()
        let line = [UInt8](repeating: UInt8(ascii: "a"), count: 4095) + [UInt8(ascii: "\n")]
        steps.whileGathering { for _ in 0..<5 { sink.write(line) } }
        sink.write(line)
        #expect(steps.all == ["gather", "hurry", "write 4", "write 2"])
    }
}
