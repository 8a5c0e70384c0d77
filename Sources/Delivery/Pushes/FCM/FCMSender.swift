import DeliveryOutcomes
import EventLoop
import Log
import TLS
import World

/// A sender of pushes to Android phones over FCM's HTTP v1 interface. Each loop has its own
/// connections; the access token is the process's.
public final class FCMSender: Sendable {
    private let loops: PushLoops
    private let project: String
    private let path: String
    private let trust: TLSClientContext.Roots

    /// - Parameter trust: the authorities that may certify the host, and the host that issues access
    ///   tokens.
    public init(
        endpoint: PushEndpoint = .fcm, account: FCMServiceAccount, trust: TLSClientContext.Roots = .system,
        time: any TimeSource, randomness: any Randomness, log: Log, options: PushOptions = PushOptions(),
        observer: (any PushObserver)? = nil
    ) throws {
        self.trust = trust
        project = account.project
        path = "/v1/projects/\(project)/messages:send"
        let identity = try PushIdentity(
            account, trust: trust, options: options, time: time, randomness: randomness, log: log)
        loops = PushLoops(
            PushSharedState(
                endpoint: endpoint, dialect: FCMDialect(), identity: identity, time: time, randomness: randomness,
                log: log, options: options, observer: observer))
    }

    /// Returns whether the text has the form of a registration token.
    public static func isToken(_ text: String) -> Bool { FCMMessage.isToken(text) }

    /// Sends a message over the connections of the current loop. Must be called on a loop. Returns
    /// shortly after `options.deadline` at the latest.
    public func send(_ message: FCMMessage) async -> DeliveryOutcome {
        await withUnsafeContinuation { continuation in send(message) { continuation.resume(returning: $0) } }
    }

    /// Sends a message without a task. `completion` is called once, on the loop, possibly before
    /// this function returns.
    public func send(_ message: FCMMessage, completion: @escaping (DeliveryOutcome) -> Void) {
        loops.current.send(FCMRequest(message: message, path: path), completion: completion)
    }

    /// Opens the connections of the current loop and obtains the access token, so that the first
    /// push does not wait for them. Must be called on a loop.
    public func connectEagerly() { loops.current.connectEagerly() }

    /// The fault that prevents pushes, as far as it is known; nil if there is none.
    public var fault: String? { loops.shared.fault }

    /// The host of FCM, and whether it cannot be reached now.
    public var host: (name: String, isDown: Bool) { loops.shared.host(for: nil) }

    /// Returns the state at the end of each loop's last turn. May be called from any thread and
    /// does not wait.
    public func snapshot() -> PushSnapshot { loops.snapshot }

    /// Switches to another key of the account, or to another account of the project. Later pushes
    /// go out under it on new connections. May be called from any thread. If it throws, nothing has
    /// changed.
    public func replace(account: FCMServiceAccount) throws {
        let shared = loops.shared
        let former = (shared.identity.authorization as? AccessToken)?.account
        guard former?.isSame(as: account) != true else { return }
        // The phones have tokens of one project, so their pushes would be refused.
        guard account.project == project else {
            throw FCMServiceAccount.Fault("has the project \(account.project) instead of \(project)")
        }
        loops.adopt(
            try PushIdentity(
                account, trust: trust, options: shared.options, time: shared.time, randomness: shared.randomness,
                log: shared.log))
    }

    /// Closes the connections of all loops. Pushes on their way become ambiguous.
    public func close() { loops.close() }
}

extension PushIdentity {
    convenience init(
        _ account: FCMServiceAccount, trust: TLSClientContext.Roots, options: PushOptions, time: any TimeSource,
        randomness: any Randomness, log: Log
    ) throws {
        let tls = try TLSClientContext(roots: trust)
        let request = AccessTokenRequest(account: account, tls: tls, options: options, time: time, log: log)
        self.init(
            tls: tls, authorization: AccessToken(request, time: time, randomness: randomness, log: log), events: .fcm,
            log: log)
    }
}
