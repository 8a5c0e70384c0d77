import EventLoop
import Log
import Synchronization
import World

/// The balancers that pass connections through, and name the caller in a PROXY header. Their header
/// is required and trusted; other peers cannot send one. One object for all loops.
public final class Proxies: Sendable {
    private struct Refusals {
        var count: UInt64 = 0
        var burst = LogThrottle()
    }

    private let ranges: Mutex<[AddressRange]>
    private let refusals = Mutex(Refusals())

    public init(_ ranges: [AddressRange] = []) { self.ranges = Mutex(ranges) }

    func contain(_ address: SocketAddress) -> Bool {
        ranges.withLock { $0 }.contains { $0.contains(address) }
    }

    /// Uses these ranges for connections that are accepted from now on.
    public func replace(_ ranges: [AddressRange]) { self.ranges.withLock { $0 = ranges } }

    /// The number of their connections that sent no PROXY header, or an invalid one.
    public var refused: UInt64 { refusals.withLock { $0.count } }

    func refuse(_ proxy: String, _ fault: ProxyHeader.Fault, at now: Instant, _ log: Log) {
        let count = refusals.withLock { refusals in
            refusals.count += 1
            return refusals.burst.record(at: now)
        }
        if let count {
            log.warning("connection.refused", [.remote: proxy, .reason: fault.rawValue, .count: count])
        }
    }
}
