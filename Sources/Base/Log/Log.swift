import Synchronization
import World

public enum LogLevel: String, Sendable, Comparable, CaseIterable {
    case debug
    case info
    /// An event that an operator should see: a start, a reload, a lock.
    case notice
    /// Something works less well than it should.
    case warning
    /// Something does not work.
    case error

    var rank: Int {
        switch self {
        case .debug: 0
        case .info: 1
        case .notice: 2
        case .warning: 3
        case .error: 4
        }
    }

    public static func < (a: LogLevel, b: LogLevel) -> Bool { a.rank < b.rank }
}

public enum LogFormat: String, Sendable, CaseIterable {
    /// `time=… level=info event=… key=value`, for people and for grep.
    case logfmt
    /// The same content as one JSON object per line.
    case json
}

/// A log of events, one per line. The name of an event is fixed text. Values that a peer can
/// influence follow a key and are escaped.
public final class Log: Sendable {
    private let threshold: LogThreshold
    private let format: LogFormat
    private let time: any TimeSource
    private let sink: any LogSink
    private let context: LogFields

    public init(
        format: LogFormat = .logfmt, minimum: LogLevel = .info, time: any TimeSource = SystemTime(),
        sink: any LogSink = StandardErrorSink()
    ) {
        threshold = LogThreshold(minimum)
        self.format = format
        self.time = time
        self.sink = sink
        self.context = LogFields()
    }

    private init(_ parent: Log, adding fields: LogFields) {
        threshold = parent.threshold
        format = parent.format
        time = parent.time
        sink = parent.sink
        context = parent.context.merging(fields)
    }

    /// Returns a log that adds these fields to every line.
    public func with(_ fields: LogFields) -> Log { Log(self, adding: fields) }

    /// Writes lines of this level and above from now on, also in the logs that `with` has made from
    /// this one.
    public func use(minimum: LogLevel) { threshold.rank.store(minimum.rank, ordering: .relaxed) }

    /// The number of lines of a level that were dropped since the start, because the reader was too
    /// slow.
    public func dropped(_ level: LogLevel) -> UInt64 { sink.dropped(level) }

    /// The time for which the reader has not taken the line that is being written; nil if none is.
    public var stalled: Duration? { sink.stalled }

    public func debug(_ event: StaticString, _ fields: @autoclosure () -> LogFields = [:]) {
        record(.debug, event, fields)
    }

    public func info(_ event: StaticString, _ fields: @autoclosure () -> LogFields = [:]) {
        record(.info, event, fields)
    }

    public func notice(_ event: StaticString, _ fields: @autoclosure () -> LogFields = [:]) {
        record(.notice, event, fields)
    }

    public func warning(_ event: StaticString, _ fields: @autoclosure () -> LogFields = [:]) {
        record(.warning, event, fields)
    }

    public func error(_ event: StaticString, _ fields: @autoclosure () -> LogFields = [:]) {
        record(.error, event, fields)
    }

    private func record(_ level: LogLevel, _ event: StaticString, _ fields: () -> LogFields) {
        guard level.rank >= threshold.rank.load(ordering: .relaxed) else { return }
        var line = LogLine(format: format)
        line.add("time", .text(time.now().rfc3339))
        line.add("level", .text(level.rawValue))
        line.add("event", .text(event.description))
        let all = context.merging(fields()).during(LoggedRequest.current).all
        for (key, value) in all { line.add(key.rawValue, value) }
        sink.write(line.finish(), level)
    }
}

/// The lowest level that is written. A log and those that are made from it share it.
private final class LogThreshold: Sendable {
    let rank: Atomic<Int>

    init(_ minimum: LogLevel) { rank = Atomic(minimum.rank) }
}
