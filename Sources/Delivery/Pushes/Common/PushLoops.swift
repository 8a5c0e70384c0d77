import EventLoop
import Synchronization
import World

/// The parts of one sender on all loops that have used it.
final class PushLoops: Sendable {
    private struct Entry {
        let loopState: LoopBound<PushLoop>
        let gauges: PushGauges
    }

    let shared: PushSharedState
    private let entries = Mutex<[ObjectIdentifier: Entry]>([:])
    private let isClosed = Atomic(false)

    init(_ shared: PushSharedState) { self.shared = shared }

    deinit {
        // Otherwise the connections would stay open and the pools would renew them without a
        // sender.
        if !isClosed.load(ordering: .relaxed) { close() }
    }

    /// The part on the current loop. Must be called on a loop.
    var current: PushLoop {
        guard let loop = EventLoop.current else { preconditionFailure("a sender of pushes: not on a loop") }
        let entry = entries.withLock { entries in
            if let entry = entries[ObjectIdentifier(loop)] { return entry }
            let gauges = PushGauges()
            let loopState = LoopBound(PushLoop(loop: loop, shared: shared, gauges: gauges), on: loop)
            let entry = Entry(loopState: loopState, gauges: gauges)
            entries[ObjectIdentifier(loop)] = entry
            return entry
        }
        return entry.loopState.value
    }

    /// The state at the end of each loop's last turn. May be called from any thread and does not
    /// wait.
    var snapshot: PushSnapshot {
        var snapshot = PushSnapshot()
        for entry in entries.withLock({ Array($0.values) }) {
            entry.gauges.add(to: &snapshot, at: entry.loopState.loop.time.instant())
        }
        snapshot.tokenAge = shared.identity.authorization?.tokenAge
        return snapshot
    }

    /// Switches all loops to another identity. They replace their connections at once, without
    /// waiting for the next push.
    func adopt(_ identity: PushIdentity) {
        shared.adopt(identity)
        for entry in entries.withLock({ Array($0.values) }) {
            entry.loopState.loop.post { entry.loopState.value.adopt() }
        }
    }

    func close() {
        isClosed.store(true, ordering: .relaxed)
        for entry in entries.withLock({ Array($0.values) }) {
            entry.loopState.loop.post { entry.loopState.value.close() }
        }
    }
}
