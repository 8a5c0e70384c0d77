import EventLoop
import Log
import Synchronization
import World

/// The proxies that pass connections through to us, and say whose they are. Their word is taken, and they have to give it;
/// nobody else is listened to. One for all loops.
public final class Proxies: Sendable {
    private struct Refusals {
        var count: UInt64 = 0
        var burst = LogThrottle()
    }

    private let ranges: [AddressRange]
    private let refusals = Mutex(Refusals())

    public init(_ ranges: [AddressRange] = []) { self.ranges = ranges }

    func contain(_ address: SocketAddress) -> Bool { ranges.contains { $0.contains(address) } }

    /// Connections of theirs that said nothing of where they come from, or nothing that can be right.
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
