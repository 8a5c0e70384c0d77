import Log
import Synchronization

/// Keeps the lines of a log, and tells who waits for one.
public final class WatchedSink: LogSink {
    private struct State {
        var lines: [String] = []
        var waiting: [(event: String, count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())

    public init() {}

    public var lines: [String] { state.withLock { $0.lines } }

    public static func isOf(_ event: String, _ line: String) -> Bool {
        line.contains("event=\(event) ") || line.hasSuffix("event=\(event)")
    }

    public func write(_ line: [UInt8]) {
        let text = String(decoding: line.dropLast(), as: UTF8.self)
        let ready = state.withLock { state in
            state.lines.append(text)
            let lines = state.lines
            func isReady(_ event: String, _ count: Int) -> Bool { lines.count { Self.isOf(event, $0) } >= count }
            let ready = state.waiting.filter { isReady($0.event, $0.count) }
            state.waiting.removeAll { isReady($0.event, $0.count) }
            return ready.map(\.continuation)
        }
        for continuation in ready { continuation.resume() }
    }

    /// Returns when there are so many lines of that event.
    public func lines(of event: String, count: Int) async {
        await withCheckedContinuation { continuation in
            let isReady = state.withLock { state in
                let isReady = state.lines.count { Self.isOf(event, $0) } >= count
                if !isReady { state.waiting.append((event, count, continuation)) }
                return isReady
            }
            if isReady { continuation.resume() }
        }
    }
}
