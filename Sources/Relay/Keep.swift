import Domain
import Log
import Synchronization
import World

/// What a relay does to be known as alive, and to notice who is not.
public protocol KeepStore: Sendable {
    /// Moves this relay's beat (writing its row if it has none) and reads everybody's.
    func beat(_ relay: RelayID, at: Timestamp) async throws(StoreFailure) -> [Beat]
    /// Frees what a dead relay held, and removes its row.
    func bury(_ relay: RelayID, at: Timestamp) async throws(StoreFailure)
    /// Drops what is kept for repeated requests and to limit text messages, and older than that, a few rows at a time.
    func dropKept(before: Timestamp) async throws(StoreFailure)
    /// Only to see that the store answers.
    func probe() async throws(StoreFailure)
}

public struct Beat: Sendable, Equatable {
    public let relay: RelayID
    public let count: Int64

    public init(relay: RelayID, count: Int64) {
        self.relay = relay
        self.count = count
    }
}

/// The other relays, judged by whether their beat moved while our own monotonic clock did. Clocks are never compared.
struct PeerWatch: Sendable {
    static let patience = Duration.seconds(10)
    private var seen: [RelayID: (count: Int64, since: Instant)] = [:]

    /// Those whose beat has stood still for too long.
    mutating func dead(_ beats: [Beat], except own: RelayID, at now: Instant) -> [RelayID] {
        var dead: [RelayID] = []
        var next: [RelayID: (count: Int64, since: Instant)] = [:]
        for beat in beats where beat.relay != own {
            if let before = seen[beat.relay], before.count == beat.count {
                next[beat.relay] = before
                if now - before.since >= Self.patience { dead.append(beat.relay) }
            } else {
                next[beat.relay] = (beat.count, now)
            }
        }
        seen = next
        return dead
    }
}

/// The watch, shared by the loops, and how it goes with the own beat.
final class Peers: Sendable {
    private let watch = Mutex(PeerWatch())
    private let trouble = Mutex<String?>(nil)

    /// Why the last beat could not be written.
    var ownTrouble: String? { trouble.withLock { $0 } }

    /// What was known before.
    func note(_ trouble: String?) -> String? {
        self.trouble.withLock { known in
            defer { known = trouble }
            return known
        }
    }

    func dead(_ beats: [Beat], except own: RelayID, at now: Instant) -> [RelayID] {
        watch.withLock { $0.dead(beats, except: own, at: now) }
    }
}

extension Relay {
    /// Called by the daemon's timer every two seconds.
    public func keep() async {
        let beats: [Beat]
        do throws(Refusal) {
            beats = try await ask("keep") { () async throws(StoreFailure) in try await store.beat(id, at: time.now()) }
        } catch {
            _ = peers.note("nothing can be written")
            return
        }
        if peers.note(nil) != nil { log.notice("relay.recovered") }
        let others = beats.map(\.relay).filter { $0 != id }
        let dead = settings.isAlone ? others : peers.dead(beats, except: id, at: time.instant())
        for relay in dead {
            log.warning("relay.dead", [.relay: relay.text])
            _ = try? await ask("keep") { () async throws(StoreFailure) in
                try await store.bury(relay, at: time.now())
            }
        }
    }

    /// Called once nothing runs here any more: what this relay held is free at once.
    public func leave() async {
        _ = try? await ask("leave") { () async throws(StoreFailure) in try await store.bury(id, at: time.now()) }
    }

    /// Called by the daemon's timer every minute.
    public func tidy() async {
        _ = try? await ask("tidy") { () async throws(StoreFailure) in
            try await store.dropDead(before: time.now() - Self.deadFor)
        }
        let backlog = try? await ask("tidy") { () async throws(StoreFailure) in
            try await store.backlog(at: time.now())
        }
        if let backlog { metrics.noted(backlog, at: time.now()) }
        _ = try? await ask("tidy") { () async throws(StoreFailure) in
            try await store.dropKept(before: time.now() - Self.keptFor)
        }
    }

    /// Nil when the store answers, else why not; for /ready. A full disk reads well, so the last beat counts too.
    public func storeTrouble() async -> String? {
        if let trouble = peers.ownTrouble { return trouble }
        do throws(StoreFailure) {
            try await store.probe()
            return nil
        } catch {
            switch error {
            case .unavailable(let why), .internal(let why): return why
            }
        }
    }
}
