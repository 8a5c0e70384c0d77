import Log
import Synchronization

/// Keeps the lines of a log, and lets tests wait for an event.
public final class ObservedSink: LogSink {
    private struct State {
        var lines: [String] = []
        var waiting: [(event: String, count: Int, number: Int, continuation: CheckedContinuation<Void, Never>)] = []
        var numbers = 0
        /// The waits whose test was cancelled.
        var cancelled: Set<Int> = []
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

    /// Returns when the log has `count` lines of the event, or when the test's time limit is over.
    public func lines(of event: String, count: Int) async {
        let number = state.withLock { state in
            state.numbers += 1
            return state.numbers
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isReady = state.withLock { state in
                    let isReady =
                        state.cancelled.contains(number) || state.lines.count { Self.isOf(event, $0) } >= count
                    if !isReady { state.waiting.append((event, count, number, continuation)) }
                    return isReady
                }
                if isReady { continuation.resume() }
            }
        } onCancel: {
            let waiting = state.withLock { state in
                state.cancelled.insert(number)
                defer { state.waiting.removeAll { $0.number == number } }
                return state.waiting.first { $0.number == number }
            }
            waiting?.continuation.resume()
        }
    }
}
