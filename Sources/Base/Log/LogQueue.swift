/// A queue of log lines that wait for the reader, bounded by their number and their bytes.
///
/// A line that does not fit is dropped and counted; a waiting line is never replaced by a later
/// one. The last quarter of the capacity is reserved for higher levels: when debug and info are
/// dropped, warnings and errors still fit. A batch that is being written counts until it is
/// finished, so a reader that has stopped cannot make memory grow. Tests: `LogQueueTests`.
public struct LogQueue: Sendable {
    public struct Bounds: Sendable {
        public var lines: Int
        public var bytes: Int

        /// Makes bounds from a number of lines.
        /// - Parameter lines: the number of lines; their bytes are limited to 256 per line on
        ///   average.
        public init(lines: Int = 8192) {
            self.init(lines: lines, bytes: lines * 256)
        }

        public init(lines: Int, bytes: Int) {
            self.lines = lines
            self.bytes = bytes
        }
    }

    /// Lines in the order in which they were added, taken together.
    public struct Batch: Sendable {
        public fileprivate(set) var bytes: [UInt8] = []
        /// The end of each line among the bytes, and its level.
        fileprivate var ends: [(end: Int, level: LogLevel)] = []
    }

    private let bounds: Bounds
    private var waiting: [(line: [UInt8], level: LogLevel)] = []
    /// The index of the oldest line in `waiting`.
    private var first = 0
    /// Totals that include the batch that is being written.
    public private(set) var lines = 0
    public private(set) var bytes = 0
    /// Dropped lines since the start, for metrics.
    private var dropped = LogCounts()
    /// Dropped lines that the log has not reported yet.
    private var unreported = LogCounts()

    public init(_ bounds: Bounds = Bounds()) { self.bounds = bounds }

    public func dropped(_ level: LogLevel) -> UInt64 { dropped[level] }

    /// Adds a line. Returns false if it was dropped.
    @discardableResult public mutating func add(_ line: [UInt8], _ level: LogLevel) -> Bool {
        guard lines < Self.share(bounds.lines, level), bytes + line.count <= Self.share(bounds.bytes, level) else {
            drop(level)
            return false
        }
        waiting.append((line, level))
        lines += 1
        bytes += line.count
        return true
    }

    /// The part of the capacity that lines of this level may use.
    private static func share(_ all: Int, _ level: LogLevel) -> Int {
        switch level {
        case .debug, .info: all * 3 / 4
        case .notice: all * 7 / 8
        case .warning, .error: all
        }
    }

    /// Takes the oldest lines, at least one and about `size` bytes; nil if none waits. A batch must
    /// be finished before the next one is taken.
    public mutating func take(about size: Int) -> Batch? {
        guard first < waiting.count else { return nil }
        var batch = Batch()
        while first < waiting.count, batch.bytes.isEmpty || batch.bytes.count + waiting[first].line.count <= size {
            batch.bytes.append(contentsOf: waiting[first].line)
            batch.ends.append((batch.bytes.count, waiting[first].level))
            waiting[first].line = []
            first += 1
        }
        if first == waiting.count {
            waiting.removeAll(keepingCapacity: waiting.capacity <= 1024)
            first = 0
        } else if first >= 1024 {
            waiting.removeFirst(first)
            first = 0
        }
        return batch
    }

    /// Finishes a batch. Lines that are not completely within the first `written` bytes count as
    /// dropped.
    public mutating func finish(_ batch: Batch, written: Int) {
        lines -= batch.ends.count
        bytes -= batch.bytes.count
        for (end, level) in batch.ends where end > written { drop(level) }
    }

    private mutating func drop(_ level: LogLevel) {
        dropped[level] += 1
        unreported[level] += 1
    }

    /// The number of lines dropped since the last call, by level, without zeros.
    public mutating func takeUnreported() -> [(level: LogLevel, count: UInt64)] {
        defer { unreported = LogCounts() }
        return LogLevel.allCases.filter { unreported[$0] > 0 }.map { ($0, unreported[$0]) }
    }

    /// Returns counts that could not be written to the log after all.
    public mutating func requeue(_ counts: [(level: LogLevel, count: UInt64)]) {
        for (level, count) in counts { unreported[level] += count }
    }
}

/// A number for each level.
private struct LogCounts: Sendable {
    private var counts = [UInt64](repeating: 0, count: LogLevel.allCases.count)

    subscript(level: LogLevel) -> UInt64 {
        get { counts[level.rank] }
        set { counts[level.rank] = newValue }
    }
}
