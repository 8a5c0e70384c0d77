import Bytes
import EventLoop
import Glibc
import HTTP
import HTTP2
import JSON
import Log
import Synchronization
import TLS
import World

/// A push service that behaves as Apple's or FCM does, over HTTP/2 and TLS, for one app.
///
/// It checks every request as the service would (`AppleRules`, `FCMRules`), sends the service's
/// answers, and records what it received. By default it accepts every valid request. `script` sets
/// other answers for a prefix of the device token. `injectFaults` sets faults for all requests, and
/// `setConnectionBehavior` sets the behavior of the next connections.
///
/// Invariant: equal requests in the same order get equal answers. No fault is random, so a failing
/// test can be repeated. Scripts take precedence over fault rules. Tested in
/// `FaultPlanTests.swift`, `ScriptTests.swift` and `AppleCheckTests.swift`.
public final class FakePushService: Sendable {
    private struct Running {
        var server: LoopBound<HTTP2Server>?
        var floor: LoopBound<ConnectionRegistry>?
        var host = "127.0.0.1"
        var port: UInt16 = 0
        var tls: TLSServerContext
    }

    public let loop: EventLoop
    private let responder: PushResponder
    private let limits: ServerLimits
    private let log: Log
    private let running: Mutex<Running>

    /// Creates a service that does not listen yet: see `start`.
    ///
    /// All observers are called on the loop. `onPush` receives every accepted push, as the phone
    /// would. `onRequest` receives every request with its outcome. `onConnection` receives the
    /// opening and the end of every connection.
    ///
    /// - Parameter tokenUpdates: the number of different provider tokens that are accepted within
    ///   20 minutes. A further one is refused with `TooManyProviderTokenUpdates`.
    public convenience init(
        loop: EventLoop, tls: TLSServerContext, topic: String, authentication: ProviderAuthentication,
        tokenUpdates: Int = 50, limits: ServerLimits = FakePushService.limits, keeping: RecordingLimits = .everything,
        randomness: any Randomness, log: Log, onPush: (@Sendable (ReceivedPush) -> Void)? = nil,
        onRequest: (@Sendable (RecordedRequest) -> Void)? = nil,
        onConnection: (@Sendable (ConnectionEvent) -> Void)? = nil
    ) {
        let tokens = ProviderTokenCheck(authentication, updateLimit: tokenUpdates)
        self.init(
            loop: loop, tls: tls, rules: AppleRules(check: AppleCheck(topic: topic), tokens: tokens), limits: limits,
            keeping: keeping, randomness: randomness, log: log,
            listeners: PushResponder.Listeners(push: onPush, request: onRequest, connection: onConnection))
    }

    /// Creates a service that behaves as FCM, and issues the access tokens, too. The parameters are
    /// those above.
    public convenience init(
        loop: EventLoop, tls: TLSServerContext, project: FakeProject,
        limits: ServerLimits = FakePushService.limits, keeping: RecordingLimits = .everything,
        randomness: any Randomness, log: Log, onPush: (@Sendable (ReceivedPush) -> Void)? = nil,
        onRequest: (@Sendable (RecordedRequest) -> Void)? = nil,
        onConnection: (@Sendable (ConnectionEvent) -> Void)? = nil
    ) {
        self.init(
            loop: loop, tls: tls, rules: FCMRules(project: project, randomness: randomness), limits: limits,
            keeping: keeping, randomness: randomness, log: log,
            listeners: PushResponder.Listeners(push: onPush, request: onRequest, connection: onConnection))
    }

    private init(
        loop: EventLoop, tls: TLSServerContext, rules: any ServiceRules, limits: ServerLimits,
        keeping: RecordingLimits, randomness: any Randomness, log: Log, listeners: PushResponder.Listeners
    ) {
        self.loop = loop
        self.limits = limits
        self.log = log
        running = Mutex(Running(tls: tls))
        responder = PushResponder(
            rules: rules, loop: loop, keeping: keeping, randomness: randomness, log: log, listeners: listeners)
    }

    /// The server limits of Apple's service. Connections may be idle for a day, and streams get one
    /// second to end when the service stops. The limit on resets is practically off, because a test
    /// may script many resets.
    public static var limits: ServerLimits {
        var limits = ServerLimits()
        limits.idle = .seconds(24 * 3600)
        limits.drain = .seconds(1)
        limits.abuseCapacity = .max / 2
        return limits
    }

    // MARK: Running

    /// Starts to listen, from any task. A service that already listens is replaced, and its
    /// connections get GOAWAY.
    ///
    /// - Parameters:
    ///   - host: the address; nil for the previous one, at first 127.0.0.1.
    ///   - port: the port; nil for the previous one, at first any free port.
    /// - Returns: the port.
    @discardableResult
    public func start(host: String? = nil, port: UInt16? = nil) async throws -> UInt16 {
        let opened = await loop.perform { [self] in open(host, port) }
        let (actual, before) = try opened.get()
        if let before { await Self.drain(before) }
        return actual
    }

    /// Opens the new server. It runs on the loop, so two starts cannot overlap.
    private func open(_ host: String?, _ port: UInt16?) -> Result<(UInt16, LoopBound<HTTP2Server>?), SystemFailure> {
        running.withLock { running in
            do throws(SystemFailure) {
                let host = host ?? running.host
                guard let address = SocketAddress(host: host, port: port ?? running.port) else {
                    throw SystemFailure("address \(host)", EINVAL)
                }
                let floor = ConnectionRegistry(responder: responder, before: running.floor?.value.total ?? 0)
                let server = try HTTP2Server(
                    loop: loop, address: address, tls: running.tls, handler: responder, keeper: floor, limits: limits,
                    log: log)
                try server.start()
                let before = running.server
                running.server = LoopBound(server, on: loop)
                running.floor = LoopBound(floor, on: loop)
                running.host = host
                running.port = server.port
                return .success((server.port, before))
            } catch {
                return .failure(error)
            }
        }
    }

    public var port: UInt16 { running.withLock { $0.port } }

    /// Stops the service, from any task. It sends GOAWAY, and gives streams `limits.drain` to end.
    public func stop() async {
        let server = running.withLock { running in
            defer { running.server = nil }
            return running.server
        }
        if let server { await Self.drain(server) }
    }

    /// Sends GOAWAY on all connections, from any task, as Apple does occasionally. New connections
    /// are accepted on the same port.
    public func goAway() async throws { try await start() }

    private static func drain(_ server: LoopBound<HTTP2Server>) async {
        await server.loop.perform {
            await withUnsafeContinuation { continuation in server.value.drain { continuation.resume() } }
        }
    }

    // MARK: Faults

    /// Sets the answers to the next requests for device tokens with this prefix, one for each
    /// request.
    ///
    /// After the last answer, requests are accepted again, or get the last answer forever if
    /// `repeatsLast`. An empty list removes the script. If several prefixes match, the longest one
    /// applies.
    public func script(_ prefix: String, _ answers: ScriptedAnswer..., repeatsLast: Bool = false) {
        script(prefix, answers, repeatsLast: repeatsLast)
    }

    public func script(_ prefix: String, _ answers: [ScriptedAnswer], repeatsLast: Bool = false) {
        responder.script(prefix, answers, repeatsLast: repeatsLast)
    }

    /// Replaces the faults for all requests. Their counts start again, and open connections get
    /// their new stream limits.
    public func injectFaults(_ faults: FaultPlan) async {
        responder.injectFaults(faults)
        await withConnections(nil) { $0.change(faults) }
    }

    /// Sets the behavior of the next connections, one for each. After the last one, connections are
    /// served normally again, or get the last behavior forever if `repeatsLast`.
    public func setConnectionBehavior(_ receptions: ConnectionBehavior..., repeatsLast: Bool = false) {
        setConnectionBehavior(receptions, repeatsLast: repeatsLast)
    }

    func setConnectionBehavior(_ receptions: [ConnectionBehavior], repeatsLast: Bool) {
        responder.setConnectionBehavior(receptions, repeatsLast: repeatsLast)
    }

    func replaceScripts(_ scripts: [(prefix: String, answers: [ScriptedAnswer])]) { responder.replaceScripts(scripts) }

    // MARK: Access tokens of FCM

    /// Sets the answers to the next requests for an access token. The last one repeats; without
    /// answers, each request gets a token.
    public func setTokenAnswers(_ answers: [AccessTokenAnswer]) {
        responder.withRules { rules in
            guard var fcm = rules as? FCMRules else { return }
            fcm.tokenAnswers = AnswerSequence(answers, repeatsLast: true)
            rules = fcm
        }
    }

    /// Forgets all access tokens, so that requests with one get UNAUTHENTICATED.
    public func revokeTokens() {
        responder.withRules { rules in
            guard var fcm = rules as? FCMRules else { return }
            fcm.revokeTokens()
            rules = fcm
        }
    }

    /// The number of access tokens that were issued.
    public var issuedTokens: Int { responder.withRules { ($0 as? FCMRules)?.issued ?? 0 } }

    // MARK: Open connections, by their number since the service was created (from 1); nil for all

    /// Sends SETTINGS with a new stream limit on one connection, or on all if it is nil.
    public func announce(streams: UInt32, on connection: Int? = nil) async {
        await withConnections(connection) { $0.announce(streams: streams) }
    }

    /// Sends GOAWAY on one open connection, or on all if it is nil, while the service continues.
    /// The newest `replays` streams without an answer are declared unprocessed.
    public func sendGoAway(replays: Int = 0, on connection: Int? = nil) async {
        await withConnections(connection) { $0.goAway(replays: replays) }
    }

    /// Freezes a connection, or all if it is nil: nothing is read or written on it any more.
    public func freeze(connection: Int? = nil) async { await withConnections(connection) { $0.freeze() } }

    /// Closes a connection, or all if it is nil, with a TCP reset.
    public func cut(connection: Int? = nil) async { await withConnections(connection) { $0.cut() } }

    /// The numbers of the open connections, the frozen ones included.
    public var connections: [Int] {
        get async {
            await loop.perform { [self] in
                running.withLock(\.floor).map { $0.value.standing.keys.sorted() } ?? []
            }
        }
    }

    private func withConnections(_ number: Int?, _ body: @escaping @Sendable (ProviderConnection) -> Void) async {
        await loop.perform { [self] in
            guard let floor = running.withLock(\.floor) else { return }
            for connection in floor.value.chosen(number) { body(connection) }
        }
    }

    // MARK: Received pushes and requests

    /// Returns the next accepted push, in order of arrival. Each push is returned once.
    public func next(within duration: Duration = .seconds(120)) async throws(MailboxTimeout) -> ReceivedPush {
        try await responder.pushes.next(within: duration)
    }

    /// Returns the next request with its outcome, in order of arrival. Each request is returned
    /// once.
    public func nextRequest(within duration: Duration = .seconds(120)) async throws(MailboxTimeout) -> RecordedRequest {
        try await responder.requests.next(within: duration)
    }

    /// The number of accepted requests.
    public var acceptedCount: Int { responder.acceptedCount }

    /// The number of received requests, whatever their answer.
    public var requestCount: Int { responder.requestCount }

    /// The accepted pushes, with the ids that were accepted more than once.
    public var deliveries: Deliveries { responder.deliveries }
}
