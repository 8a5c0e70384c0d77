import Bytes
import EventLoop
import HTTP
import HTTP2
import Log
import TLS
import World

/// The built-in carrier: HTTP/2 with the website's client certificate, over a pool of connections.
///
/// The relay allows 100 streams on a connection, and a call that the relay holds occupies one for up
/// to a minute. A call uses the oldest connection with a free stream. If there is none, the carrier
/// opens another connection, up to `mostConnections`; beyond that, the call waits for a stream. A
/// connection that was idle for half a minute is closed unless it is the only one. One that was closed
/// or stopped answering (see `RelayConnection`) is replaced. If a connection accepts no new calls, its
/// calls may still finish there.
///
/// The actor runs on an event loop: on its own one, or on one that the website passes. Invariant:
/// each call is resumed exactly once, by its answer, a failure or its cancellation. Tested in
/// `HTTP2CarrierTests.swift`.
public actor HTTP2Carrier: Carrier {
    /// A call that waits for a connection or for its answer. It is resumed once.
    private struct Waiting {
        let request: ClientRequest
        let deadline: Duration
        let continuation: CheckedContinuation<Result<Response, CallFault>, Never>
        var line: RelayConnection?
        var sent: HTTP2Client.Sent?
    }

    /// A pause that a caller waits for.
    private struct Pause {
        let continuation: CheckedContinuation<Void, Never>
        let timer: TimerID
    }

    /// The address of the relay.
    public nonisolated let relay: WebAddress
    private nonisolated let loop: EventLoop
    private let group: LoopGroup?
    private let tls: TLSClientContext
    /// The most connections for new calls.
    public nonisolated let mostConnections: Int
    /// The connections for new calls, the oldest first.
    private var lines: [RelayConnection] = []
    private var isOpening = false
    private var isClosed = false
    private var last: UInt64 = 0
    private var waiting: [UInt64: Waiting] = [:]
    private var pauses: [UInt64: Pause] = [:]

    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Creates a carrier with its own thread, which ends with the carrier.
    ///
    /// - Parameters:
    ///   - origin: the origin of the relay, as in its settings: `https://host:port`.
    ///   - authority: the authority that signed the relay's certificate, as PEM.
    ///   - certificate: the website's certificate, as PEM.
    ///   - key: the website's private key.
    ///   - mostConnections: the most connections at once, at least one.
    public init(
        origin: String, authority: [UInt8], certificate: [UInt8], key: Secret,
        mostConnections: Int = HTTP2Carrier.usualConnections
    ) throws(CallFault) {
        guard let relay = WebAddress(origin) else {
            throw .unable("the relay's origin must be https://host:port, not '\(origin)'")
        }
        let tls = try Self.context(authority, certificate, key)
        let group: LoopGroup
        do throws(SystemFailure) {
            group = try LoopGroup.start(count: 1, time: SystemTime())
        } catch {
            throw .unable("cannot start a thread: \(error.description)")
        }
        self.init(loop: group.loops[0], group: group, relay: relay, tls: tls, mostConnections)
    }

    /// Creates a carrier on an event loop that the website owns.
    public init(
        loop: EventLoop, relay: WebAddress, authority: [UInt8], certificate: [UInt8], key: Secret,
        mostConnections: Int = HTTP2Carrier.usualConnections
    ) throws(CallFault) {
        self.init(
            loop: loop, group: nil, relay: relay, tls: try Self.context(authority, certificate, key), mostConnections)
    }

    private init(
        loop: EventLoop, group: LoopGroup?, relay: WebAddress, tls: TLSClientContext, _ mostConnections: Int
    ) {
        self.mostConnections = max(1, mostConnections)
        self.loop = loop
        self.group = group
        self.relay = relay
        self.tls = tls
    }

    isolated deinit {
        for line in lines { line.close() }
        group?.stopAndJoin()
    }

    private static func context(
        _ authority: [UInt8], _ certificate: [UInt8], _ key: Secret
    ) throws(CallFault) -> TLSClientContext {
        do throws(TLSFailure) {
            return try TLSClientContext(roots: .pem(authority), certificateChainPEM: certificate, privateKeyPEM: key)
        } catch {
            throw .unable("authority, certificate or key cannot be used: \(error.description)")
        }
    }

    // MARK: Calls

    public func send(_ call: RelayCall) async throws(CallFault) -> RelayReply {
        var fields = Fields()
        for (name, value) in call.fields.sorted(by: { $0.key < $1.key }) { fields.add(name, value) }
        let response = try await send(
            call.method, call.path, fields: fields, body: call.bytes, deadline: call.timeout)
        let received = response.fields.all.map { ($0.name, $0.value) }
        return RelayReply(
            status: response.status, fields: Dictionary(received) { first, _ in first }, body: response.body)
    }

    /// Sends a request whose body need not be JSON, and returns the answer with all of its fields.
    /// It throws as `send` does for a call.
    package func send(
        _ method: String, _ path: String, fields: Fields, body: [UInt8], deadline: Duration
    ) async throws(CallFault) -> Response {
        let request = ClientRequest(
            method: method, path: path, authority: relay.authority, fields: fields, body: body)
        let number = next()
        let result: Result<Response, CallFault> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                // The cancellation handler may have run before, when there was no call to cancel
                // yet.
                guard !Task.isCancelled else {
                    continuation.resume(returning: .failure(.cancelled))
                    return
                }
                waiting[number] = Waiting(request: request, deadline: deadline, continuation: continuation)
                begin(number)
            }
        } onCancel: {
            loop.post { self.assumeIsolated { $0.giveUp(number) } }
        }
        return try result.get()
    }

    /// Closes all connections and ends the calls under way. Every later call fails with
    /// `.unreached`.
    public func close() {
        isClosed = true
        for line in lines { line.close() }
        lines = []
        for earlier in waiting.values.compactMap(\.line) { earlier.close() }
        for number in waiting.keys { end(number, .failure(.unreached("the carrier is closed"))) }
    }

    private func next() -> UInt64 {
        last += 1
        return last
    }

    private func begin(_ number: UInt64) {
        guard !isClosed else { return end(number, .failure(.unreached("the carrier is closed"))) }
        lines.removeAll { !$0.isOpen }
        let free = lines.first { $0.isFree }
        guard free != nil || lines.count == mostConnections else { return open() }
        if let line = free ?? lines.min(by: { $0.calls < $1.calls }) { send(number, on: line) }
    }

    private func send(_ number: UInt64, on line: RelayConnection) {
        guard let call = waiting[number] else { return }
        waiting[number]?.line = line
        let sent = line.send(call.request, deadline: call.deadline) { result in
            self.end(number, result.mapError(Self.fault))
            // The stream is free for a call that waits for a new connection.
            if self.isOpening { for number in self.unsent { self.begin(number) } }
            self.rest(line)
        }
        waiting[number]?.sent = sent
    }

    private static func fault(_ failure: RequestFailure) -> CallFault {
        switch failure {
        case .notSent(let reason): .unreached(reason)
        case .ambiguous(let reason): .unanswered(reason)
        }
    }

    private func end(_ number: UInt64, _ result: Result<Response, CallFault>) {
        waiting.removeValue(forKey: number)?.continuation.resume(returning: result)
    }

    private func giveUp(_ number: UInt64) {
        // Remove the call first: giving up calls the completion, and nobody may receive that
        // result.
        guard let given = waiting.removeValue(forKey: number) else { return }
        if let line = given.line, let sent = given.sent { line.giveUp(sent) }
        given.continuation.resume(returning: .failure(.cancelled))
    }

    // MARK: The connections

    /// Opens a connection. Calls that arrive meanwhile wait for it, too.
    private func open() {
        guard !isOpening else { return }
        isOpening = true
        loop.spawn { await self.connect() }
    }

    private func connect() async {
        let fresh = HTTP2Client(
            loop: loop, host: relay.host, port: relay.port ?? 443, tls: tls, log: Log(minimum: .error))
        do throws(ConnectionFailure) {
            try await fresh.connect()
            opened(fresh)
        } catch {
            failed(error.description)
        }
    }

    private func opened(_ fresh: HTTP2Client) {
        isOpening = false
        if isClosed { fresh.close() }
        // A relay that shuts down may have sent GOAWAY already. The retry policy decides about
        // another attempt.
        guard fresh.state == .open else { return failed("the relay closed the connection at once") }
        let line = RelayConnection(fresh, on: loop)
        lines.append(line)
        for number in unsent { begin(number) }
        rest(line)
    }

    /// Lets the waiting calls wait for a stream of another connection. Without one they fail.
    private func failed(_ reason: String) {
        isOpening = false
        lines.removeAll { !$0.isOpen }
        for number in unsent {
            if let line = lines.min(by: { $0.calls < $1.calls }) {
                send(number, on: line)
            } else {
                end(number, .failure(.unreached(reason)))
            }
        }
    }

    /// Closes a connection that stays idle, unless it is the only one.
    private func rest(_ line: RelayConnection) {
        guard line.calls == 0, lines.count > 1 else { return }
        let (line, total) = (LoopBound(line, on: loop), line.total)
        // Weak, so that the carrier need not live until then.
        loop.schedule(after: Self.idle) { [weak self] in
            self?.assumeIsolated { $0.closeIdle(line.value, total) }
        }
    }

    private func closeIdle(_ line: RelayConnection, _ total: Int) {
        lines.removeAll { !$0.isOpen }
        guard line.calls == 0, line.total == total, lines.count > 1 else { return }
        lines.removeAll { $0 === line }
        line.close()
    }

    private var unsent: [UInt64] { waiting.filter { $0.value.sent == nil }.keys.sorted() }

    /// The usual limit of connections: 1600 calls at once.
    public static let usualConnections = 16
    /// The time after which an idle connection is closed.
    private static let idle = Duration.seconds(30)

    // MARK: Time

    public func pause(for duration: Duration) async {
        let number = next()
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                guard !Task.isCancelled else {
                    continuation.resume()
                    return
                }
                let timer = loop.schedule(after: duration) { self.resume(number) }
                pauses[number] = Pause(continuation: continuation, timer: timer)
            }
        } onCancel: {
            loop.post { self.assumeIsolated { $0.resume(number) } }
        }
    }

    private func resume(_ number: UInt64) {
        guard let pause = pauses.removeValue(forKey: number) else { return }
        loop.cancel(pause.timer)
        pause.continuation.resume()
    }
}
