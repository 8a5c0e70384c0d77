import Synchronization
import World

/// The gauges of one loop, written on the loop and read on any thread.
final class PushGauges: Sendable {
    struct Reading {
        var connections = 0
        var inFlight = 0
        var queued = 0
        var streamLimit = 0
        var oldest: Instant?
    }

    private let connections = Atomic(0)
    private let inFlight = Atomic(0)
    private let queued = Atomic(0)
    private let streamLimit = Atomic(0)
    /// Nanoseconds of the oldest waiting push; 0 if none waits.
    private let oldest = Atomic<Int64>(0)

    func publish(_ reading: Reading) {
        connections.store(reading.connections, ordering: .relaxed)
        inFlight.store(reading.inFlight, ordering: .relaxed)
        queued.store(reading.queued, ordering: .relaxed)
        streamLimit.store(reading.streamLimit, ordering: .relaxed)
        oldest.store(reading.oldest?.nanoseconds ?? 0, ordering: .relaxed)
    }

    func add(to snapshot: inout PushSnapshot, at now: Instant) {
        snapshot.connections += connections.load(ordering: .relaxed)
        snapshot.inFlight += inFlight.load(ordering: .relaxed)
        snapshot.queued += queued.load(ordering: .relaxed)
        snapshot.streamLimit += streamLimit.load(ordering: .relaxed)
        let oldest = oldest.load(ordering: .relaxed)
        guard oldest != 0 else { return }
        let wait = max(now - Instant(nanoseconds: oldest), .zero)
        snapshot.oldestWait = max(wait, snapshot.oldestWait ?? .zero)
    }
}
