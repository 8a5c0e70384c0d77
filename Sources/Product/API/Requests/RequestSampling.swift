import Log
import Synchronization
import World

/// Bounds the lines about refused requests of callers without an identity: a flood of them must not drown the log.
///
/// Some requests of each class are written every second. The others are counted, and a line gives their number.
struct RequestSampling: Sendable {
    /// Lines of one class in a second.
    static let perSecond = 10

    struct Class: Hashable, Sendable {
        /// The status of the answer; nil if nobody waited for it any more.
        let status: Int?
        /// A certificate of ours that let nobody in: a flood without one must not hide it.
        let hasCertificate: Bool

        fileprivate var order: Int { (status ?? 0) * 2 + (hasCertificate ? 1 : 0) }
    }

    private struct Window {
        var since: Instant
        var written = 0
        var left = 0
    }

    private var windows: [Class: Window] = [:]

    /// Whether this request has a line of its own.
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

    /// Those without a line since the last call.
    mutating func takeLeft() -> [(kind: Class, count: Int)] {
        let left = windows.filter { $0.value.left > 0 }.map { ($0.key, $0.value.left) }
        for (kind, _) in left { windows[kind]?.left = 0 }
        return left.sorted { $0.0.order < $1.0.order }
    }
}

/// Shared by the loops.
final class SampledRequests: Sendable {
    private let sampling = Mutex(RequestSampling())

    func admit(_ kind: RequestSampling.Class, at now: Instant) -> Bool { sampling.withLock { $0.admit(kind, at: now) } }
    func takeLeft() -> [(kind: RequestSampling.Class, count: Int)] { sampling.withLock { $0.takeLeft() } }
}

extension API {
    /// Called by the daemon's timer every second, and before it ends.
    public func logSampledRequests() {
        for (kind, count) in sampled.takeLeft() {
            let caller = kind.hasCertificate ? "certificate" : "anonymous"
            log.info("request.sampled", [.status: kind.status, .kind: caller, .count: count])
        }
    }
}
