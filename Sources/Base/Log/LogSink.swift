import CLinux
import Glibc
import Synchronization

/// The destination of log lines. Each line ends with its newline.
public protocol LogSink: Sendable {
    func write(_ line: [UInt8])
    func write(_ line: [UInt8], _ level: LogLevel)
    /// The number of lines of a level that were dropped since the start.
    func dropped(_ level: LogLevel) -> UInt64
    /// The time for which the reader has not taken the bytes that are being written; nil if none
    /// are.
    var stalled: Duration? { get }
}

extension LogSink {
    public func write(_ line: [UInt8], _ level: LogLevel) { write(line) }
    public func dropped(_ level: LogLevel) -> UInt64 { 0 }
    public var stalled: Duration? { nil }
}

/// Writes on the calling thread and waits for the reader, for programs that an operator runs. Each
/// line is one write, so that the lines of several threads do not mix.
public struct StandardErrorSink: LogSink {
    public init() {}

    public func write(_ line: [UInt8]) { _ = Self.write(line) }

    /// Writes everything, however long the reader takes. Returns the number of bytes written, which
    /// is smaller only after a failure, which cannot be reported here.
    public static func write(_ bytes: [UInt8]) -> Int {
        var written = 0
        while written < bytes.count {
            let count = bytes[written...].withUnsafeBytes { clinux_write_stderr($0.baseAddress, $0.count) }
            if count > 0 {
                written += Int(count)
            } else if errno == EAGAIN {
                // Another process that shares the descriptor has made it non-blocking.
                var ready = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
                poll(&ready, 1, -1)
            } else if errno != EINTR {
                break
            }
        }
        return written
    }
}

/// Keeps the lines in memory, for tests.
public final class MemorySink: LogSink {
    private let kept = Mutex<[String]>([])

    public init() {}

    public func write(_ line: [UInt8]) {
        let text = String(decoding: line.last == UInt8(ascii: "\n") ? line.dropLast() : line[...], as: UTF8.self)
        kept.withLock { $0.append(text) }
    }

    /// The lines without their newlines.
    public var lines: [String] { kept.withLock { $0 } }

    /// The lines since the last call.
    public func drain() -> [String] {
        kept.withLock { lines in
            defer { lines = [] }
            return lines
        }
    }
}
