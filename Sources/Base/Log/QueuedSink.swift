import Synchronization
import World

/// A sink that queues lines for another thread, so that logging code never waits for the reader of
/// the log.
///
/// This module has no thread: `run` passes the work to one. At most one piece of work is there at a
/// time, and it writes until the queue is empty. Dropped lines are reported as soon as the reader
/// takes lines again.
///
/// A write and the wake-up of its thread cost more than a line. So the work first waits for more
/// lines (`gather`), and writes them together. A line of level `notice` or above ends the wait, and
/// so do enough lines for one write.
public final class QueuedSink: LogSink {
    private struct State {
        var queue: LogQueue
        var isDraining = false
        var isGathering = false
        /// When the write of the current batch began; nil if none is being written.
        var writingSince: Instant?
    }

    /// The most bytes of one write.
    private static let batch = 16_384

    private let state: Mutex<State>
    /// The waiting lines and bytes that are written without waiting for more: those of one write, or
    /// half of what the queue takes.
    private let enough: (lines: Int, bytes: Int)
    private let format: LogFormat
    private let time: any TimeSource
    private let output: @Sendable ([UInt8]) -> Int
    private let run: @Sendable (@escaping @Sendable () -> Void) -> Void
    private let gather: @Sendable () -> Void
    private let hurry: @Sendable () -> Void

    /// Makes a sink.
    /// - Parameters:
    /// - output: writes bytes, may block, and returns how many were written: fewer only after a
    ///   failure.
    /// - run: runs work on the thread that may block, one piece after the other; returns at once.
    /// - gather: waits for a short time, on that thread.
    /// - hurry: ends the wait of `gather`, or the next one.
    public init(
        bounds: LogQueue.Bounds, format: LogFormat, time: any TimeSource,
        output: @escaping @Sendable ([UInt8]) -> Int = StandardErrorSink.write,
        run: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void,
        gather: @escaping @Sendable () -> Void = {}, hurry: @escaping @Sendable () -> Void = {}
    ) {
        state = Mutex(State(queue: LogQueue(bounds)))
        enough = (bounds.lines / 2, min(Self.batch, bounds.bytes / 2))
        self.format = format
        self.time = time
        self.output = output
        self.run = run
        self.gather = gather
        self.hurry = hurry
    }

    public func write(_ line: [UInt8]) { write(line, .info) }

    public func write(_ line: [UInt8], _ level: LogLevel) {
        let (mustRun, mustHurry) = state.withLock { state in
            guard state.queue.add(line, level) else { return (false, false) }
            let mustRun = !state.isDraining
            let isEnough =
                level >= .notice || state.queue.bytes >= enough.bytes || state.queue.lines >= enough.lines
            let mustHurry = isEnough && (mustRun || state.isGathering)
            if mustRun { (state.isDraining, state.isGathering) = (true, true) }
            if mustHurry { state.isGathering = false }
            return (mustRun, mustHurry)
        }
        if mustHurry { hurry() }
        if mustRun { run { self.drain() } }
    }

    public func dropped(_ level: LogLevel) -> UInt64 { state.withLock { $0.queue.dropped(level) } }

    /// The number of lines that wait for the reader.
    public var queued: Int { state.withLock { $0.queue.lines } }

    public var stalled: Duration? {
        state.withLock { $0.writingSince }.map { time.instant() - $0 }
    }

    private func drain() {
        gather()
        while let batch = next() {
            let written = output(batch.bytes)
            let counts = state.withLock { state in
                state.writingSince = nil
                state.queue.finish(batch, written: written)
                return written == batch.bytes.count ? state.queue.takeUnreported() : []
            }
            if !counts.isEmpty { say(counts) }
        }
    }

    private func next() -> LogQueue.Batch? {
        let now = time.instant()
        return state.withLock { state in
            let batch = state.queue.take(about: Self.batch)
            state.isGathering = false
            state.isDraining = batch != nil
            state.writingSince = batch.map { _ in now }
            return batch
        }
    }

    private func say(_ counts: [(level: LogLevel, count: UInt64)]) {
        var text: [UInt8] = []
        for (level, count) in counts {
            var line = LogLine(format: format)
            line.add("time", .text(time.now().rfc3339))
            line.add("level", .text(LogLevel.warning.rawValue))
            line.add("event", .text("log.dropped"))
            line.add(LogKey.kind.rawValue, .text(level.rawValue))
            line.add(LogKey.count.rawValue, count.logged)
            text += line.finish()
        }
        if output(text) < text.count { state.withLock { $0.queue.requeue(counts) } }
    }
}
