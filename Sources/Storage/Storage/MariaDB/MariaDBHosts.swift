import Synchronization
import World

/// The hosts of a store and how it went with each, shared by all its sessions: they are on the same one, so that a read is
/// asked where the write before it was done.
final class MariaDBHosts: Sendable {
    /// How it went with one of them.
    private struct Health {
        var failures = 0
        /// Until then the others are asked first.
        var pausedUntil: Instant?
    }

    private struct State {
        var current = 0
        var healths: [Health]
    }

    /// After a host failed once; twice as long each time, up to the last.
    private static let firstRest = Duration.seconds(5)
    private static let longestRest = Duration.seconds(60)
    /// What a host did before that is forgotten.
    private static let memory = Duration.seconds(300)

    let hosts: [StorageURL.Server.Host]
    private let time: any TimeSource
    private let state: Mutex<State>

    init(_ hosts: [StorageURL.Server.Host], time: any TimeSource) {
        self.hosts = hosts
        self.time = time
        state = Mutex(State(healths: Array(repeating: Health(), count: hosts.count)))
    }

    /// Where every session should be.
    var current: Int { state.withLock { $0.current } }

    /// In the order in which to try them: the one where the others are and those behind it, then those that failed a
    /// moment ago, whose rest ends first in front. None is left out: it may be the only one that is there.
    var order: [Int] {
        let now = time.instant()
        let (current, rests) = state.withLock { state in (state.current, state.healths.map(\.pausedUntil)) }
        let ring = hosts.indices.map { ($0 + current) % hosts.count }
        let resting = ring.compactMap { host in rests[host].flatMap { $0 > now ? (host, $0) : nil } }
        return ring.filter { host in !resting.contains { $0.0 == host } }
            + resting.sorted { $0.1 < $1.1 }.map(\.0)
    }

    /// It was silent, refused, or said that it cannot: whoever connects tries the others first for a while.
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

    /// A session is there now: the others come, too.
    func chose(_ host: Int) { state.withLock { $0.current = host } }
}
