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

/// A push service that speaks as Apple's does, over HTTP/2 and TLS, for one topic and one team. It looks at every
/// request as Apple would, gives Apple's answers, and keeps what came.
///
/// By default every right request is accepted. `script` gives other answers by the first digits of the device token.
public final class FakeAPNs: Sendable {
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

    /// `onPush` is called on the loop for every push that is accepted: this is where a phone would ring. `onRequest` is
    /// told of every request when it has come, and of what it gets, `onConnection` when one stands and when it ends.
    ///
    /// - Parameter tokenUpdates: different provider tokens within 20 minutes; one more is refused as too many.
    public init(
        loop: EventLoop, tls: TLSServerContext, topic: String, authentication: ProviderAuthentication,
        tokenUpdates: Int = 50, limits: ServerLimits = FakeAPNs.limits, keeping: RecordingLimits = .everything,
        randomness: any Randomness, log: Log, onPush: (@Sendable (ReceivedPush) -> Void)? = nil,
        onRequest: (@Sendable (RecordedRequest) -> Void)? = nil,
        onConnection: (@Sendable (ConnectionEvent) -> Void)? = nil
    ) {
        self.loop = loop
        self.limits = limits
        self.log = log
        running = Mutex(Running(tls: tls))
        responder = PushResponder(
            check: AppleCheck(topic: topic), tokens: ProviderTokenCheck(authentication, updateLimit: tokenUpdates),
            loop: loop, keeping: keeping, randomness: randomness, log: log,
            listeners: PushResponder.Listeners(push: onPush, request: onRequest, connection: onConnection))
    }

    /// Apple's connections stand for hours. Streams get a second to end when the service leaves. That a client is reset
    /// often is what it may have been told to bear.
    public static var limits: ServerLimits {
        var limits = ServerLimits()
        limits.idle = .seconds(24 * 3600)
        limits.drain = .seconds(1)
        limits.abuseCapacity = .max / 2
        return limits
    }

    // MARK: Running

    /// From any task. Listens where it did before unless something else is said; at first at a free port of 127.0.0.1.
    /// Returns the port. What ran before is told to go away.
    @discardableResult
    public func start(host: String? = nil, port: UInt16? = nil) async throws -> UInt16 {
        let opened = await loop.perform { [self] in open(host, port) }
        let (actual, before) = try opened.get()
        if let before { await Self.drain(before) }
        return actual
    }

    /// On the loop, and so one after the other.
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

    /// From any task: says GOAWAY, lets the streams end for as long as `limits.drain` allows, and is gone.
    public func stop() async {
        let server = running.withLock { running in
            defer { running.server = nil }
            return running.server
        }
        if let server { await Self.drain(server) }
    }

    /// From any task: the connections get a GOAWAY, as Apple's do now and then; new ones are taken at the same port.
    public func goAway() async throws { try await start() }

    private static func drain(_ server: LoopBound<HTTP2Server>) async {
        await server.loop.perform {
            await withUnsafeContinuation { continuation in server.value.drain { continuation.resume() } }
        }
    }

    // MARK: What it does

    /// The next requests for tokens that begin so get these answers, one each; then they are accepted again, or get the
    /// last answer for ever. No answers: forget what was scripted. The longest beginning counts.
    public func script(_ prefix: String, _ answers: ScriptedAnswer..., repeatsLast: Bool = false) {
        script(prefix, answers, repeatsLast: repeatsLast)
    }

    public func script(_ prefix: String, _ answers: [ScriptedAnswer], repeatsLast: Bool = false) {
        responder.script(prefix, answers, repeatsLast: repeatsLast)
    }

    /// What goes wrong for everybody from now on, in place of what did before; counts begin anew. Standing connections are
    /// told of their new stream limits.
    public func injectFaults(_ faults: FaultPlan) async {
        responder.injectFaults(faults)
        await withConnections(nil) { $0.change(faults) }
    }

    /// The next connections are met so, one each; then they are served again, or met as the last one was for ever.
    public func setConnectionBehavior(_ receptions: ConnectionBehavior..., repeatsLast: Bool = false) {
        setConnectionBehavior(receptions, repeatsLast: repeatsLast)
    }

    func setConnectionBehavior(_ receptions: [ConnectionBehavior], repeatsLast: Bool) {
        responder.setConnectionBehavior(receptions, repeatsLast: repeatsLast)
    }

    func replaceScripts(_ scripts: [(prefix: String, answers: [ScriptedAnswer])]) { responder.replaceScripts(scripts) }

    // MARK: Connections that stand, by their number since the service was made (from 1); nil: all

    /// SETTINGS again.
    public func announce(streams: UInt32, on connection: Int? = nil) async {
        await withConnections(connection) { $0.announce(streams: streams) }
    }

    /// GOAWAY on connections that stand, while the service stays: the newest so many streams without an answer yet were not
    /// processed.
    public func sendGoAway(replays: Int = 0, on connection: Int? = nil) async {
        await withConnections(connection) { $0.goAway(replays: replays) }
    }

    /// From here on nothing is read or written on it.
    public func freeze(connection: Int? = nil) async { await withConnections(connection) { $0.freeze() } }

    /// A TCP reset.
    public func cut(connection: Int? = nil) async { await withConnections(connection) { $0.cut() } }

    /// The numbers of those that stand, the frozen ones too.
    public var connections: [Int] {
        get async {
            await loop.perform { [self] in
                running.withLock(\.floor).map { $0.value.standing.keys.sorted() } ?? []
            }
        }
    }

    private func withConnections(_ number: Int?, _ body: @escaping @Sendable (AppleConnection) -> Void) async {
        await loop.perform { [self] in
            guard let floor = running.withLock(\.floor) else { return }
            for connection in floor.value.chosen(number) { body(connection) }
        }
    }

    // MARK: What came

    /// Pushes that were accepted and not handed out yet, one a call, in order.
    public func next(within duration: Duration = .seconds(120)) async throws(MailboxTimeout) -> ReceivedPush {
        try await responder.pushes.next(within: duration)
    }

    /// Requests of every kind, with what was made of them, one a call, in order.
    public func nextRequest(within duration: Duration = .seconds(120)) async throws(MailboxTimeout) -> RecordedRequest {
        try await responder.requests.next(within: duration)
    }

    /// How many requests were accepted.
    public var acceptedCount: Int { responder.acceptedCount }

    /// How many requests came, whatever they got.
    public var requestCount: Int { responder.requestCount }

    /// Which pushes were accepted, and which of them more than once.
    public var deliveries: Deliveries { responder.deliveries }
}
