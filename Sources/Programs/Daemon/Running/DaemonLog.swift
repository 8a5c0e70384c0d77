import EventLoop
import Log
import Metrics
import World

/// The log of the running daemon. Lines are queued, and a separate thread writes them to standard
/// error.
///
/// If the reader of standard error stalls, lines are dropped and counted; nothing else waits. At
/// the end of the process the queued lines are written, within `timeout`. A crash loses the queued
/// lines. Tested in `StalledLogTests.swift`.
final class DaemonLog: Sendable {
    /// The longest time that the end of the process waits for the reader.
    static let timeout = Duration.seconds(2)
    /// The time without progress after which `/ready` reports the log.
    static let stall = Duration.seconds(5)
    /// The time for which lines below `notice` wait for others, to be written together.
    static let gathering = Duration.milliseconds(10)

    let log: Log
    private let writer: WorkerThread
    private let bell: WakeSemaphore

    /// Starts the thread. Must run after `Signals.init`, because threads inherit the blocked
    /// signals.
    init(_ form: Settings.LogSettings) throws(SystemFailure) {
        let writer = try WorkerThread(name: "log")
        let bell = WakeSemaphore()
        (self.writer, self.bell) = (writer, bell)
        let sink = QueuedSink(
            bounds: LogQueue.Bounds(lines: form.queue), format: form.format, time: SystemTime(),
            run: { writer.post($0) }, gather: { _ = bell.wait(for: Self.gathering) }, hurry: { bell.signal() })
        log = Log(format: form.format, minimum: form.level, sink: sink)
    }

    /// Writes the queued lines; later lines are lost. Returns false if the reader did not take them
    /// in time.
    @discardableResult func close() -> Bool {
        writer.stop()
        bell.signal()
        return writer.join(within: Self.timeout)
    }

    static func show(_ log: Log, in registry: Registry) {
        registry.counters(
            "twoefay_log_dropped_lines_total",
            "Log lines dropped because the log reader stalled or writing failed, by level.", by: "level",
            LogLevel.self
        ) { log.dropped($0) }
    }

    /// Returns why lines are not taken, for `/ready`; nil while they are.
    static func fault(_ log: Log) -> String? {
        guard let stalled = log.stalled, stalled >= stall else { return nil }
        return "the log reader has read no line for \(stalled.components.seconds) s"
    }
}
