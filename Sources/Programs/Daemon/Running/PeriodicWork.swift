import API
import EventLoop
import Relay
import Synchronization

/// The tasks that a relay repeats on one loop, each after its own pause.
///
/// Purpose: two groups with different ends. `work` starts new deliveries, so it stops first when
/// the daemon stops. `presence` shows other relays that this one is alive, so it runs until no
/// request is left.
///
/// Invariant: a task never overlaps with itself. The pause begins when the last run has ended, so a
/// slow store delays the next run.
///
/// Failure modes: if `presence` stopped too early, other relays would take over leases that this
/// relay still holds.
///
/// `DrainTests.swift` tests the order of the stop through the built program.
final class PeriodicWork: Sendable {
    private let stopped = Mutex(false)
    private let backgroundWork = BackgroundWork()
    private let loop: EventLoop

    private init(on loop: EventLoop) { self.loop = loop }

    /// The periodic work that continues while requests are served. It looks for changes and
    /// revocations by other relays, reads and makes rolling keys, records which keys websites use
    /// and what they use up, writes the heads of the audit, and increments the heartbeat.
    /// Without the heartbeat, other relays would take over the outbox entries that this relay
    /// holds.
    static func presence(
        _ relay: Relay, _ api: API, _ heads: AuditHeadsExport?, on loop: EventLoop
    ) -> PeriodicWork {
        let work = PeriodicWork(on: loop)
        loop.post {
            work.every(.milliseconds(50)) { await relay.watch() }
            work.every(.seconds(1)) { await relay.watchRevocations() }
            work.every(.seconds(1)) { await relay.runHeartbeat() }
            work.every(.seconds(1)) { await relay.releaseLeft() }
            work.every(.seconds(1)) { await relay.rollKeysIfMissed() }
            work.every(.seconds(60)) { await relay.rollKeys() }
            work.every(.seconds(1)) { api.logSampledRequests() }
            work.every(.seconds(5)) { await relay.recordWebsiteKeyUse() }
            work.every(.seconds(5)) { await relay.recordUsage() }
            if let heads { work.every(AuditHeadsExport.pause) { await heads.append() } }
        }
        return work
    }

    /// The periodic work that starts new work. It processes due outbox entries, sends webhooks,
    /// deletes old rows, reseals secrets after a key rotation, replaces old webhook secrets, checks the end dates of
    /// certificates, and syncs users from directories.
    static func work(
        _ relay: Relay, _ certificates: Certificates, _ websites: WebsiteExpiries, _ directories: DirectoryWork,
        on loop: EventLoop
    ) -> PeriodicWork {
        let work = PeriodicWork(on: loop)
        loop.post {
            work.every(.seconds(1)) { await relay.processDueEntries() }
            work.every(.seconds(1)) { await relay.deliverWebhooks() }
            work.every(.seconds(60)) { await relay.deleteExpiredRows() }
            work.every(.seconds(60)) { await relay.reseal() }
            work.every(.seconds(60)) { await relay.rollWebhookSecrets() }
            work.every(.seconds(60)) { await relay.sealPersonalValues() }
            work.every(.seconds(60)) { certificates.look() }
            work.every(.seconds(60)) { await websites.look(relay) }
            work.every(.seconds(1)) { await directories.syncDue() }
        }
        return work
    }

    private var isStopped: Bool { stopped.withLock { $0 } }

    /// Lets no further run begin.
    func stop() { stopped.withLock { $0 = true } }

    /// Returns when no run is in progress, or after `limit`. Must be called on a loop.
    func ended(within limit: Duration) async { await backgroundWork.settled(within: limit) }

    /// Runs `round`, and again after `pause`. The pause begins when the run has ended, however long
    /// it took.
    private func every(_ pause: Duration, _ round: @escaping @Sendable () async -> Void) {
        backgroundWork.spawn {
            guard !self.isStopped else { return }
            await round()
            guard !self.isStopped else { return }
            _ = self.loop.schedule(after: pause) { self.every(pause, round) }
        }
    }
}
