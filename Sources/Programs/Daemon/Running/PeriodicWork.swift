import API
import EventLoop
import Relay
import Synchronization

/// The periodic work of a relay on one loop.
final class PeriodicWork: Sendable {
    private let stopped = Mutex(false)
    private let backgroundWork = BackgroundWork()
    private let loop: EventLoop

    private init(on loop: EventLoop) { self.loop = loop }

    /// The periodic work that goes on while requests are still served. It looks for changes and
    /// revocations by other relays, and moves the relay's heartbeat. Without the heartbeat, other
    /// relays would take over the work that this relay holds.
    static func presence(_ relay: Relay, _ api: API, on loop: EventLoop) -> PeriodicWork {
        let rounds = PeriodicWork(on: loop)
        loop.post {
            rounds.every(.milliseconds(50)) { await relay.watch() }
            rounds.every(.seconds(1)) { await relay.watchRevocations() }
            rounds.every(.seconds(1)) { await relay.runHeartbeat() }
            rounds.every(.seconds(1)) { await relay.releaseLeft() }
            rounds.every(.seconds(1)) { api.logSampledRequests() }
        }
        return rounds
    }

    /// The periodic work that starts new work. It looks into the outbox, sends webhooks, deletes
    /// old rows, seals secrets anew after a change of the key, and counts the days of certificates.
    static func work(_ relay: Relay, _ certificates: Certificates, on loop: EventLoop) -> PeriodicWork {
        let rounds = PeriodicWork(on: loop)
        loop.post {
            rounds.every(.seconds(1)) { await relay.processDueEntries() }
            rounds.every(.seconds(1)) { await relay.deliverWebhooks() }
            rounds.every(.seconds(60)) { await relay.deleteExpiredRows() }
            rounds.every(.seconds(60)) { await relay.reseal() }
            rounds.every(.seconds(60)) { certificates.look() }
        }
        return rounds
    }

    private var isStopped: Bool { stopped.withLock { $0 } }

    /// No round begins any more.
    func stop() { stopped.withLock { $0 = true } }

    /// On a loop: returns when none runs, or after `limit`.
    func ended(within limit: Duration) async { await backgroundWork.settled(within: limit) }

    /// The next round begins when the last has ended, however long it took.
    private func every(_ pause: Duration, _ round: @escaping @Sendable () async -> Void) {
        backgroundWork.spawn {
            guard !self.isStopped else { return }
            await round()
            guard !self.isStopped else { return }
            _ = self.loop.schedule(after: pause) { self.every(pause, round) }
        }
    }
}
