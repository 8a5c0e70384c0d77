import Domain
import Log
import Synchronization
import World

/// The store port of heartbeats, by which relays detect that another relay has died.
///
/// Each relay increments a counter in its own row every second, and reads the counters of all
/// relays. A `FailureDetector` declares another relay dead when its counter has not moved for seven
/// seconds. The store then frees what the dead relay held: its leases on outbox entries and its
/// chore.
///
/// Invariant: clocks of different machines are never compared. Only the local monotonic clock
/// measures, and only time during which this relay itself was running. A relay is removed only if
/// its counter still has the value that was read, so a heartbeat that arrives in between saves it.
///
/// Failure modes: a relay that was halted, and declared dead, continues later. Its outbox entries
/// may belong to another relay by then, so every settlement checks the lease. If this relay is
/// halted, or the store is, the others must not appear dead: see `FailureDetector.longestStep`.
///
/// Tested in `FailureDetectorTests.swift`, `DeadRelayTests.swift` and `HaltedRelayTests.swift`.
public protocol HeartbeatStore: Sendable {
    /// Increments the counter of this relay, or writes its row with zero if there is none. Returns
    /// the heartbeats of all relays.
    func sendHeartbeat(_ relay: RelayID, at: Timestamp) async throws(StoreFailure) -> [Heartbeat]
    /// Frees the outbox entries and the chore that a dead relay held, and deletes its row.
    ///
    /// - Parameter count: the counter at which the relay was declared dead; if the counter has
    ///   moved since, nothing changes. If nil, the relay is removed whatever its counter is.
    func removeDeadRelay(_ relay: RelayID, at count: Int64?, now: Timestamp) async throws(StoreFailure)
    /// Reads from the store, only to check that it answers.
    func probe() async throws(StoreFailure)
}

/// The heartbeat of one relay, as the store has it.
public struct Heartbeat: Sendable, Equatable {
    public let relay: RelayID
    public let count: Int64

    public init(relay: RelayID, count: Int64) {
        self.relay = relay
        self.count = count
    }
}

/// The rule that declares another relay dead when its heartbeat stops. It measures with the
/// monotonic clock of this relay, and never compares clocks.
struct FailureDetector: Sendable {
    /// The time that a heartbeat may stand still. With this value, another relay has the entries of
    /// a dead relay ten seconds after its end.
    static let timeout = Duration.seconds(7)
    /// The maximum time between two observations that counts towards `timeout`; any time beyond it
    /// is ignored. If more time passed, this relay was halted, or the store was. The store halts
    /// for about six seconds when a node of a cluster dies. In both cases the other relays could
    /// not send heartbeats either.
    static let longestStep = Duration.seconds(2)
    private var seen: [RelayID: (count: Int64, still: Duration)] = [:]
    private var lastLook: Instant?

    /// Returns the relays whose heartbeat has stood still for `timeout`.
    mutating func dead(_ beats: [Heartbeat], except own: RelayID, at now: Instant) -> [Heartbeat] {
        let step = min(lastLook.map { now - $0 } ?? .zero, Self.longestStep)
        lastLook = now
        var dead: [Heartbeat] = []
        var next: [RelayID: (count: Int64, still: Duration)] = [:]
        for beat in beats where beat.relay != own {
            if let before = seen[beat.relay], before.count == beat.count {
                next[beat.relay] = (beat.count, before.still + step)
                if before.still + step >= Self.timeout { dead.append(beat) }
            } else {
                next[beat.relay] = (beat.count, .zero)
            }
        }
        seen = next
        return dead
    }
}

/// The failure detector that all loops share, and the state of this relay's own heartbeat.
final class PeerRelays: Sendable {
    private let watch = Mutex(FailureDetector())
    private let fault = Mutex<String?>(nil)

    /// The reason why the last heartbeat could not be written; nil if it was written.
    var ownFault: String? { fault.withLock { $0 } }

    /// Records the outcome of a heartbeat.
    ///
    /// - Parameter fault: why it could not be written; nil if it was written.
    /// - Returns: the fault that was recorded before.
    func recordHeartbeat(_ fault: String?) -> String? {
        self.fault.withLock { known in
            defer { known = fault }
            return known
        }
    }

    func dead(_ beats: [Heartbeat], except own: RelayID, at now: Instant) -> [Heartbeat] {
        watch.withLock { $0.dead(beats, except: own, at: now) }
    }
}

extension Relay {
    /// Sends a heartbeat, and removes the relays that are dead. The daemon's timer calls it every
    /// second.
    public func runHeartbeat() async {
        let beats: [Heartbeat]
        do throws(Refusal) {
            beats = try await withStore("heartbeat") { () async throws(StoreFailure) in
                try await store.sendHeartbeat(id, at: time.now())
            }
        } catch {
            _ = peers.recordHeartbeat("the heartbeat cannot be written")
            return
        }
        if peers.recordHeartbeat(nil) != nil { log.notice("relay.recovered") }
        let others = beats.filter { $0.relay != id }
        let dead = settings.isAlone ? others : peers.dead(beats, except: id, at: time.instant())
        for beat in dead {
            log.warning("relay.dead", [.relay: beat.relay.text])
            _ = try? await withStore("heartbeat") { () async throws(StoreFailure) in
                try await store.removeDeadRelay(beat.relay, at: beat.count, now: time.now())
            }
        }
        // The entries of the dead relays are free now, and need not wait for the next outbox round.
        if !dead.isEmpty { await processDueEntries() }
    }

    /// Removes this relay's row, and frees at once what the relay held. The daemon calls it when no
    /// more work runs here.
    public func deregister() async {
        _ = try? await withStore("deregister") { () async throws(StoreFailure) in
            try await store.removeDeadRelay(id, at: nil, now: time.now())
        }
    }

    /// The reason why the store cannot be used, for `/ready`; nil if it can. A store with a full
    /// disk still answers reads, so a failed heartbeat counts too.
    public func storeTrouble() async -> String? {
        if let fault = peers.ownFault { return fault }
        do throws(StoreFailure) {
            try await store.probe()
            return nil
        } catch {
            return error.reason
        }
    }
}
