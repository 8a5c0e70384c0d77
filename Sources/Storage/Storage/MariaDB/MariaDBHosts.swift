import Synchronization
import World

/// The hosts of a store and their health, shared by all its sessions. All sessions use the same
/// host, so that a read finds what the write before it committed.
final class MariaDBHosts: Sendable {
    /// The health of one host.
    private struct Health {
        var failures = 0
        /// The time until which the other hosts are tried first.
        var pausedUntil: Instant?
    }

    private struct State {
        var current = 0
        var healths: [Health]
    }

    /// The first pause after a failure. The pause doubles with each further failure, up to
    /// `longestRest`.
    private static let firstRest = Duration.seconds(5)
    private static let longestRest = Duration.seconds(60)
    /// The time after the end of its last pause at which a host's failures are forgotten.
    private static let memory = Duration.seconds(300)

    let hosts: [StorageURL.Server.Host]
    private let time: any TimeSource
    private let state: Mutex<State>

    init(_ hosts: [StorageURL.Server.Host], time: any TimeSource) {
        self.hosts = hosts
        self.time = time
        state = Mutex(State(healths: Array(repeating: Health(), count: hosts.count)))
    }

    /// The host that every session should use.
    var current: Int { state.withLock { $0.current } }

    /// The hosts in the order in which to try them. The current host and those after it come first.
    /// Hosts in a pause follow, the one with the earliest end first. No host is omitted, because it
    /// may be the only reachable one.
    var order: [Int] {
        let now = time.instant()
        let (current, rests) = state.withLock { state in (state.current, state.healths.map(\.pausedUntil)) }
        let ring = hosts.indices.map { ($0 + current) % hosts.count }
        let resting = ring.compactMap { host in rests[host].flatMap { $0 > now ? (host, $0) : nil } }
        return ring.filter { host in !resting.contains { $0.0 == host } }
            + resting.sorted { $0.1 < $1.1 }.map(\.0)
    }

    /// Records that a host was silent, refused a connection or cannot work. New connections try the
    /// others first until the pause ends.
    func passOver(_ host: Int) {
        guard hosts.indices.contains(host) else { return }
        let now = time.instant()
        state.withLock { state in
            var health = state.healths[host]
            if let until = health.pausedUntil, now - until > Self.memory { health.failures = 0 }
            health.pausedUntil = now + min(Self.longestRest, Self.firstRest * (1 << min(health.failures, 4)))
            health.failures += 1
            state.healths[host] = health
        }
        guard current == host, let next = order.first else { return }
        state.withLock { state in
            if state.current == host { state.current = next }
        }
    }

    /// Records that a session connected to the host; the other sessions move there.
    func chose(_ host: Int) { state.withLock { $0.current = host } }
}
