import EventLoop
import Log
import Metrics
import World

/// The log of the running daemon: lines are queued, and a thread of its own writes them to standard error.
///
/// A reader that stands still costs lines, which are counted, and nothing else. At the end what is
/// queued is written, but the reader is not waited for longer than `timeout`. A crash loses what
/// is queued then.
final class DaemonLog: Sendable {
    /// The longest time that the end of the process waits for the reader.
    static let timeout = Duration.seconds(2)
    /// A reader that takes nothing for so long is missed at /ready.
    static let stall = Duration.seconds(5)

    let log: Log
    private let writer: WorkerThread

    /// To be made after `Signals`, like every thread.
    init(_ form: Settings.LogSettings) throws(SystemFailure) {
        let writer = try WorkerThread(name: "log")
        self.writer = writer
        let sink = QueuedSink(
            bounds: LogQueue.Bounds(lines: form.queue), format: form.format, time: SystemTime(),
            run: { writer.post($0) })
        log = Log(format: form.format, minimum: form.level, sink: sink)
    }

    /// Writes what is queued; what is logged from here on is lost. False if the reader did not take it in time.
    @discardableResult func close() -> Bool {
        writer.stop()
        return writer.join(within: Self.timeout)
    }

    static func show(_ log: Log, in registry: Registry) {
        registry.counters(
            "twoefay_log_dropped_lines_total",
            "Lines of the log that were dropped, because nobody took those before them or writing failed.", by: "level",
            LogLevel.self
        ) { log.dropped($0) }
    }

    /// Returns why lines are not taken, for /ready; nil while they are.
    static func fault(_ log: Log) -> String? {
        guard let stalled = log.stalled, stalled >= stall else { return nil }
        return "nobody has taken a line of the log for \(stalled.components.seconds) s"
    }
}
