import Bytes
import Crypto
import Domain
import EventLoop
import Log
import Metrics
import Relay
import Storage
import Synchronization
import World

/// The syncs that a relay makes by the intervals of the settings.
///
/// Purpose: of all relays, one at a time syncs a source. `DirectoryRuns.beginIfDue` decides which:
/// it holds the lease of the source, and nobody has begun a sync within the interval. A sync blocks,
/// so it runs on a thread of its own, one source after another.
///
/// Invariant: a sync that fails changes nothing and is tried again after the interval. If the relay
/// dies in the middle, its lease ends with its heartbeat, and another relay begins the next sync.
///
/// Failure modes: a directory that hangs delays the other sources until its timeout, at most by 15
/// minutes. `DirectoryLoginTests.swift` tests it with the built program.
final class DirectoryWork: Sendable {
    private struct State {
        var settings: Settings
        var sealer: Sealer
        var isStopped = false
        /// The time at which this relay asks the store next, by source.
        var due: [String: Instant] = [:]
        /// The result of the last sync of each source, as far as this relay knows.
        var last: [String: DirectoryRuns.Last] = [:]
    }

    private let state: Mutex<State>
    private let store: Store
    private let relay: RelayID
    private let operations: Operations
    private let randomness: any Randomness
    private let time: any TimeSource
    private let log: Log
    private let worker: WorkerThread
    private let metrics: DirectoryMetrics

    init(
        _ settings: Settings, store: Store, relay: RelayID, operationsKey: Secret, sealer: Sealer,
        randomness: any Randomness, time: any TimeSource, log: Log, _ registry: Registry
    ) throws(SystemFailure) {
        state = Mutex(State(settings: settings, sealer: sealer))
        self.store = store
        self.relay = relay
        operations = Operations(key: operationsKey, randomness: randomness, time: time)
        self.randomness = randomness
        self.time = time
        self.log = log
        worker = try WorkerThread(name: "directory")
        metrics = DirectoryMetrics(registry)
        metrics.show(settings.directories.all.map(\.name))
        DirectoryMetrics.show(in: registry, time: time) { [self] in known }
    }

    /// The result of the last sync of each source in the settings, for the metrics.
    private var known: [String: DirectoryRuns.Last] {
        state.withLock { state in
            let names = Set(state.settings.directories.all.map(\.name))
            return state.last.filter { names.contains($0.key) }
        }
    }

    /// Uses new settings and a new sealing key for later syncs.
    func replace(_ settings: Settings, _ sealer: Sealer) {
        metrics.show(settings.directories.all.map(\.name))
        state.withLock { state in
            state.settings = settings
            state.sealer = sealer
            state.due = [:]
        }
    }

    /// Lets no further change begin. A sync that runs ends before its next change.
    func stop() { state.withLock { $0.isStopped = true } }

    /// Ends the thread. Nothing may be posted to it any more, because dropped work would never be
    /// answered.
    func close() { worker.stop() }

    /// Syncs every source that is due. It must be called on a loop.
    func syncDue() async {
        let now = time.instant()
        let due = state.withLock { state in
            state.isStopped
                ? [] : state.settings.directories.all.filter { $0.interval > 0 && state.due[$0.name] ?? now <= now }
        }
        for directory in due {
            await withCheckedContinuation { continuation in
                worker.post {
                    self.takeTurn(directory)
                    continuation.resume()
                }
            }
        }
    }

    /// Syncs a source if it is this relay's turn. It runs on the worker.
    private func takeTurn(_ directory: Settings.DirectorySettings) {
        let (settings, sealer, isStopped) = state.withLock { ($0.settings, $0.sealer, $0.isStopped) }
        guard !isStopped else { return }
        let interval = Duration.seconds(directory.interval)
        let run: OperationID = operations.draw()
        let now = time.now()
        do throws(StoreFailure) {
            let turn = try store.runBlocking(
                DirectoryRuns.beginIfDue(directory.name, run, by: relay, before: now - interval, at: now))
            guard turn.isOurs else {
                // Another relay began a sync a while ago; the next one is due after the rest of the
                // interval.
                let begun = turn.last.map { now - $0.startedAt } ?? .zero
                remember(turn.last, of: directory.name, askAgainIn: max(.seconds(1), interval - max(.zero, begun)))
                return
            }
            sync(directory, settings, sealer, run)
            try store.runBlocking(DirectoryRuns.release(directory.name, by: relay))
            let last = try store.runBlocking(DirectoryRuns.all)[directory.name]
            remember(last, of: directory.name, askAgainIn: interval)
        } catch {
            remember(nil, of: directory.name, askAgainIn: min(interval, .seconds(60)))
        }
    }

    private func remember(_ last: DirectoryRuns.Last?, of name: String, askAgainIn pause: Duration) {
        let now = time.instant()
        state.withLock { state in
            state.due[name] = now + pause
            if let last { state.last[name] = last }
        }
    }

    private func sync(
        _ directory: Settings.DirectorySettings, _ settings: Settings, _ sealer: Sealer, _ run: OperationID
    ) {
        let begun = time.instant()
        let sync = DirectorySync(directory, settings, store: store, time: time)
        let keys = DirectorySync.Keys(operations: operations, sealer: sealer, randomness: randomness)
        do throws(Failure) {
            let outcome = try Actor.runBlocking(.directory(directory.name)) { () throws(Failure) in
                try sync.carryOut(run, keys, allowsMany: false) { state.withLock(\.isStopped) }
            }
            let counts = outcome.counts
            metrics.succeeded(directory.name)
            log.notice(
                "directory.synced",
                [
                    .name: directory.name, .website: directory.website, .users: counts.users, .added: counts.added,
                    .changed: counts.changed, .disabled: counts.disabled, .conflicts: counts.conflicts,
                    .milliseconds: (time.instant() - begun).wholeMilliseconds,
                ])
        } catch sync.overtaken {
            metrics.overtaken(directory.name)
            log.notice("directory.overtaken", [.name: directory.name, .website: directory.website])
        } catch {
            metrics.failed(directory.name)
            log.error("directory.failed", [.name: directory.name, .website: directory.website, .error: error.message])
        }
    }
}
