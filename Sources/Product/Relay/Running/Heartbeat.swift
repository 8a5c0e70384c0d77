import Domain
import Log
import Synchronization
import World

/// What a relay does to be known as alive, and to notice who is not.
public protocol HeartbeatStore: Sendable {
    /// Moves this relay's beat (writing its row if it has none) and reads everybody's.
    func sendHeartbeat(_ relay: RelayID, at: Timestamp) async throws(StoreFailure) -> [Heartbeat]
    /// Frees what a dead relay held, its chore too, and removes its row; nothing, if its beat has moved since it was that.
    /// Without a count it is freed however it stands.
    func removeDeadRelay(_ relay: RelayID, at count: Int64?, now: Timestamp) async throws(StoreFailure)
    /// Only to see that the store answers.
    func probe() async throws(StoreFailure)
}

public struct Heartbeat: Sendable, Equatable {
    public let relay: RelayID
    public let count: Int64

    public init(relay: RelayID, count: Int64) {
        self.relay = relay
        self.count = count
    }
}

/// The other relays, judged by whether their beat moved while our own monotonic clock did. Clocks are never compared.
struct FailureDetector: Sendable {
    /// What a dead relay had in hand is another's ten seconds after its end.
    static let timeout = Duration.seconds(7)
    /// What counts of the time between two looks. Where it was more, we were halted ourselves, or the store was, as it is
    /// for some six seconds when a node of a cluster dies: the others could not move their beats either.
    static let longestStep = Duration.seconds(2)
    private var seen: [RelayID: (count: Int64, still: Duration)] = [:]
    private var lastLook: Instant?

    /// Those whose beat has stood still for too long.
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

/// The watch, shared by the loops, and how it goes with the own beat.
final class PeerRelays: Sendable {
    private let watch = Mutex(FailureDetector())
    private let fault = Mutex<String?>(nil)

    /// Why the last beat could not be written.
    var ownTrouble: String? { fault.withLock { $0 } }

    /// What was known before.
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
    /// Called by the daemon's timer every second.
    public func runHeartbeat() async {
        let beats: [Heartbeat]
        do throws(Refusal) {
            beats = try await withStore("keep") { () async throws(StoreFailure) in
                try await store.sendHeartbeat(id, at: time.now())
            }
        } catch {
            _ = peers.recordHeartbeat("nothing can be written")
            return
        }
        if peers.recordHeartbeat(nil) != nil { log.notice("relay.recovered") }
        let others = beats.filter { $0.relay != id }
        let dead = settings.isAlone ? others : peers.dead(beats, except: id, at: time.instant())
        for beat in dead {
            log.warning("relay.dead", [.relay: beat.relay.text])
            _ = try? await withStore("keep") { () async throws(StoreFailure) in
                try await store.removeDeadRelay(beat.relay, at: beat.count, now: time.now())
            }
        }
        // What they had in hand is nobody's now, and need not wait for the next round.
        if !dead.isEmpty { await processDueEntries() }
    }

    /// Called once nothing runs here any more: what this relay held is free at once.
    public func deregister() async {
        _ = try? await withStore("leave") { () async throws(StoreFailure) in
            try await store.removeDeadRelay(id, at: nil, now: time.now())
        }
    }

    /// Nil when the store answers, else why not; for /ready. A full disk reads well, so the last beat counts too.
    public func storeTrouble() async -> String? {
        if let trouble = peers.ownTrouble { return trouble }
        do throws(StoreFailure) {
            try await store.probe()
            return nil
        } catch {
            return error.reason
        }
    }
}
