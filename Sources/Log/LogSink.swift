import CLinux
import Glibc
import Synchronization

/// Where lines go. A line ends with its newline.
public protocol LogSink: Sendable {
    func write(_ line: [UInt8])
}

/// One write for each line, so that the lines of several threads do not mix.
public struct StandardErrorSink: LogSink {
    public init() {}

    public func write(_ line: [UInt8]) {
        var written = 0
        while written < line.count {
            let count = line[written...].withUnsafeBytes { clinux_write_stderr($0.baseAddress, $0.count) }
            if count > 0 {
                written += Int(count)
            } else if errno != EINTR {
                return  // Nobody can be told that the log cannot be written.
            }
        }
    }
}

/// Keeps the lines, for tests.
public final class MemorySink: LogSink {
    private let kept = Mutex<[String]>([])

    public init() {}

    public func write(_ line: [UInt8]) {
        let text = String(decoding: line.last == UInt8(ascii: "\n") ? line.dropLast() : line[...], as: UTF8.self)
        kept.withLock { $0.append(text) }
    }

    /// Without their newlines.
    public var lines: [String] { kept.withLock { $0 } }

    /// The lines since the last call.
    public func drain() -> [String] {
        kept.withLock { lines in
            defer { lines = [] }
            return lines
        }
    }
}
