import DeliveryOutcomes
import EventLoop
import Log
import Synchronization
import TLS
import World

/// Sends pushes to Apple, or to a service that speaks as Apple does. Each loop has connections of its own.
public final class APNsSender: Sendable {
    private struct LoopEntry {
        let loopState: LoopBound<APNsLoop>
        let gauges: APNsGauges
    }

    private let shared: APNsSharedState
    private let trust: TLSClientContext.Roots
    private let places = Mutex<[ObjectIdentifier: LoopEntry]>([:])
    private let isClosed = Atomic(false)

    /// - Parameter extraTrust: certificates (PEM) that the host is believed by, besides the machine's.
    public convenience init(
        endpoint: APNsEndpoint, topic: String, credential: APNsCredential, extraTrust: [UInt8]? = nil,
        time: any TimeSource, randomness: any Randomness, log: Log, options: APNsOptions = APNsOptions(),
        observer: (any APNsObserver)? = nil
    ) throws {
        try self.init(
            endpoint: endpoint, topic: topic, credential: credential,
            trust: extraTrust.map { .systemAnd($0) } ?? .system, time: time, randomness: randomness, log: log,
            options: options, observer: observer)
    }

    /// - Parameter trust: whom to believe that the host is the one that was meant.
    public init(
        endpoint: APNsEndpoint, topic: String, credential: APNsCredential, trust: TLSClientContext.Roots,
        time: any TimeSource, randomness: any Randomness, log: Log, options: APNsOptions = APNsOptions(),
        observer: (any APNsObserver)? = nil
    ) throws {
        self.trust = trust
        let identity = try APNsIdentity(credential, trust: trust, time: time, log: log)
        shared = APNsSharedState(
            endpoint: endpoint, topic: topic, identity: identity, time: time, randomness: randomness, log: log,
            options: options, observer: observer)
    }

    deinit {
        // The connections would stand, and their pools would renew them, without anybody to send by them.
        if !isClosed.load(ordering: .relaxed) { close() }
    }

    /// Whether the text may be a device token.
    public static func isToken(_ text: String) -> Bool { APNsRequest.isToken(text) }

    /// On a loop, whose connections carry it. Answers within `options.deadline` and a little.
    public func send(_ push: APNsNotification) async -> PushOutcome {
        await withUnsafeContinuation { continuation in send(push) { continuation.resume(returning: $0) } }
    }

    /// The same without a task. `completion` is called once, on the loop, perhaps before this returns.
    public func send(_ push: APNsNotification, completion: @escaping (PushOutcome) -> Void) {
        currentLoop().send(push, completion: completion)
    }

    /// On a loop: opens its connections, so that the first push does not wait for them.
    public func connectEagerly() { currentLoop().connectEagerly() }

    /// What keeps pushes from going out, as far as it is known.
    public var fault: String? { shared.fault }

    /// From any thread, at once: how things stood at the end of each loop's last turn.
    public func snapshot() -> APNsSnapshot {
        var snapshot = APNsSnapshot()
        for place in places.withLock({ Array($0.values) }) {
            place.gauges.add(to: &snapshot, at: place.loopState.loop.time.instant())
        }
        snapshot.providerTokenAge = shared.identity.token?.age
        return snapshot
    }

    /// From any thread: pushes from now on go out under this credential, on connections of their own. Those before still
    /// answer what they were asked, and then end. Throws where `init` would; nothing has changed then.
    public func replace(credential: APNsCredential) throws {
        let former = shared.identity
        if case .token(let key, let keyID, let teamID) = credential,
            former.token?.isOf(key, keyID: keyID, teamID: teamID) == true
        {
            return
        }
        let identity = try APNsIdentity(
            credential, trust: trust, former: former, time: shared.time, log: shared.log)
        shared.adopt(identity)
        // What is open is replaced at once, and not by the next push.
        for place in places.withLock({ Array($0.values) }) {
            place.loopState.loop.post { place.loopState.value.adopt() }
        }
    }

    /// Closes the connections of all loops. What is on its way is ambiguous.
    public func close() {
        isClosed.store(true, ordering: .relaxed)
        for place in places.withLock({ Array($0.values) }) {
            place.loopState.loop.post { place.loopState.value.close() }
        }
    }

    private func currentLoop() -> APNsLoop {
        guard let loop = EventLoop.current else { preconditionFailure("APNsSender: not on a loop") }
        let place = places.withLock { places in
            if let place = places[ObjectIdentifier(loop)] { return place }
            let gauges = APNsGauges()
            let desk = LoopBound(APNsLoop(loop: loop, shared: shared, gauges: gauges), on: loop)
            let place = LoopEntry(loopState: desk, gauges: gauges)
            places[ObjectIdentifier(loop)] = place
            return place
        }
        return place.loopState.value
    }
}
