import Log
import Synchronization
import World

/// Limits the log lines about refused requests of callers without an identity, so that a flood of
/// them does not drown the log.
///
/// Some requests of each class are logged every second. The others are counted, and one line
/// reports their number.
struct RequestSampling: Sendable {
    /// The lines of one class in a second.
    static let perSecond = 10

    struct Class: Hashable, Sendable {
        /// The status of the answer; nil if the caller was gone.
        let status: Int?
        /// Whether the caller has a certificate of this installation that was not accepted. It has
        /// a separate class, so that a flood without certificates does not hide it.
        let hasCertificate: Bool

        fileprivate var order: Int { (status ?? 0) * 2 + (hasCertificate ? 1 : 0) }
    }

    private struct Window {
        var since: Instant
        var written = 0
        var left = 0
    }

    private var windows: [Class: Window] = [:]

    /// Whether this request is logged.
    mutating func admit(_ kind: Class, at now: Instant) -> Bool {
        var window = windows[kind] ?? Window(since: now)
        if now - window.since >= .seconds(1) {
            window.since = now
            window.written = 0
        }
        let isWritten = window.written < Self.perSecond
        if isWritten { window.written += 1 } else { window.left += 1 }
        windows[kind] = window
        return isWritten
    }

    /// The number of requests in each class that were not logged since the last call.
    mutating func takeLeft() -> [(kind: Class, count: Int)] {
        let left = windows.filter { $0.value.left > 0 }.map { ($0.key, $0.value.left) }
        for (kind, _) in left { windows[kind]?.left = 0 }
        return left.sorted { $0.0.order < $1.0.order }
    }
}

/// The sampling that all loops share.
final class SampledRequests: Sendable {
    private let sampling = Mutex(RequestSampling())

    func admit(_ kind: RequestSampling.Class, at now: Instant) -> Bool { sampling.withLock { $0.admit(kind, at: now) } }
    func takeLeft() -> [(kind: RequestSampling.Class, count: Int)] { sampling.withLock { $0.takeLeft() } }
}

extension API {
    /// Logs the number of requests without a line. The daemon's timer calls this every second, and
    /// once before the relay ends.
    public func logSampledRequests() {
        for (kind, count) in sampled.takeLeft() {
            let caller = kind.hasCertificate ? "certificate" : "anonymous"
            log.info("request.sampled", [.status: kind.status, .kind: caller, .count: count])
        }
    }
}
