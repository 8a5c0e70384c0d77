import DeliveryOutcomes
import EventLoop
import Log
import TLS
import World

/// A sender of pushes to Apple, or to a service with Apple's protocol. Each loop has its own
/// connections.
public final class APNsSender: Sendable {
    private let loops: PushLoops
    private let trust: TLSClientContext.Roots
    private var shared: PushSharedState { loops.shared }

    /// - Parameter extraTrust: certificates (PEM) of authorities that may certify the host, in
    ///   addition to the system's.
    public convenience init(
        endpoint: PushEndpoint, topic: String, credential: APNsCredential, extraTrust: [UInt8]? = nil,
        time: any TimeSource, randomness: any Randomness, log: Log, options: PushOptions = PushOptions(),
        observer: (any PushObserver)? = nil
    ) throws {
        try self.init(
            endpoint: endpoint, topic: topic, credential: credential,
            trust: extraTrust.map { .systemAnd($0) } ?? .system, time: time, randomness: randomness, log: log,
            options: options, observer: observer)
    }

    /// - Parameter trust: the authorities that may certify the host.
    public init(
        endpoint: PushEndpoint, topic: String, credential: APNsCredential, trust: TLSClientContext.Roots,
        time: any TimeSource, randomness: any Randomness, log: Log, options: PushOptions = PushOptions(),
        observer: (any PushObserver)? = nil
    ) throws {
        self.trust = trust
        let identity = try PushIdentity(credential, trust: trust, time: time, log: log)
        loops = PushLoops(
            PushSharedState(
                endpoint: endpoint, dialect: APNsDialect(topic: topic), identity: identity, time: time,
                randomness: randomness, log: log, options: options, observer: observer))
    }

    /// Returns whether the text has the form of a device token.
    public static func isToken(_ text: String) -> Bool { APNsRequest.isToken(text) }

    /// Sends a push over the connections of the current loop. Must be called on a loop. Returns
    /// shortly after `options.deadline` at the latest.
    public func send(_ push: APNsNotification) async -> DeliveryOutcome {
        await withUnsafeContinuation { continuation in send(push) { continuation.resume(returning: $0) } }
    }

    /// Sends a push without a task. `completion` is called once, on the loop, possibly before this
    /// function returns.
    public func send(_ push: APNsNotification, completion: @escaping (DeliveryOutcome) -> Void) {
        loops.current.send(push, completion: completion)
    }

    /// Opens the connections of the current loop, so that the first push does not wait for them.
    /// Must be called on a loop.
    public func connectEagerly() { loops.current.connectEagerly() }

    /// The fault that prevents pushes, as far as it is known; nil if there is none.
    public var fault: String? { shared.fault }

    /// Returns the host for device tokens of that environment, and whether it cannot be reached now.
    public func host(for environment: APNsNotification.Environment) -> (name: String, isDown: Bool) {
        shared.host(for: environment)
    }

    /// Returns the state at the end of each loop's last turn. May be called from any thread and
    /// does not wait.
    public func snapshot() -> PushSnapshot { loops.snapshot }

    /// Switches to another credential. Later pushes go out under it on new connections. Earlier
    /// pushes still get their answers, and their connections then end. May be called from any
    /// thread. Throws in the same cases as `init`; nothing has changed then.
    public func replace(credential: APNsCredential) throws {
        let former = shared.identity
        if case .token(let key, let keyID, let teamID) = credential,
            let token = former.authorization as? ProviderToken, token.isOf(key, keyID: keyID, teamID: teamID)
        {
            return
        }
        loops.adopt(
            try PushIdentity(credential, trust: trust, former: former, time: shared.time, log: shared.log))
    }

    /// Closes the connections of all loops. Pushes on their way become ambiguous.
    public func close() { loops.close() }
}
