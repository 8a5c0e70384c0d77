import Crypto
import EventLoop
import HTTP
import Log
import Synchronization
import TLS
import TestSupport
import World

@testable import HTTP2

/// A handler that answers with the test's closure.
struct TestHandler: Handler {
    let body: @Sendable (Request) -> Reply

    init(_ body: @escaping @Sendable (Request) -> Reply) { self.body = body }
    func handle(_ request: Request) -> Reply { body(request) }
    func refuse(_ fault: RequestFault, _ fields: Fields, hasCertificate: Bool) -> Response {
        Response(
            status: fault.status, fields: Fields([.init("has-certificate", "\(hasCertificate)")]),
            body: fault == .bodySize ? Array("too large".utf8) : [])
    }
}

/// A value that several closures share and that a test can await.
final class Shared<Value: Sendable>: Sendable {
    private struct Waiter: Sendable {
        let isFulfilled: @Sendable (Value) -> Bool
        let continuation: CheckedContinuation<Void, Never>
    }

    private struct State: Sendable {
        var value: Value
        var waiters: [Waiter] = []
    }

    private let state: Mutex<State>

    init(_ value: Value) { state = Mutex(State(value: value)) }

    @discardableResult
    func withLock<Result: Sendable>(_ body: (inout Value) -> Result) -> Result {
        let (result, ready) = state.withLock { state in
            var copy = state.value
            let result = body(&copy)
            state.value = copy
            let ready = state.waiters.filter { $0.isFulfilled(copy) }
            state.waiters.removeAll { $0.isFulfilled(copy) }
            return (result, ready)
        }
        for waiter in ready { waiter.continuation.resume() }
        return result
    }

    var current: Value { withLock { $0 } }

    /// Returns when `isFulfilled` accepts the value.
    func until(_ isFulfilled: @escaping @Sendable (Value) -> Bool) async {
        await withCheckedContinuation { continuation in
            let isReady = state.withLock { state in
                let isReady = isFulfilled(state.value)
                if !isReady {
                    state.waiters.append(Waiter(isFulfilled: isFulfilled, continuation: continuation))
                }
                return isReady
            }
            if isReady { continuation.resume() }
        }
    }
}

extension ClientOptions {
    /// Client options with long timeouts, for a busy machine.
    static var patient: ClientOptions {
        var options = ClientOptions()
        options.connectTimeout = .seconds(Patience.seconds)
        options.userTimeout = .seconds(Patience.seconds)
        options.pingTimeout = .seconds(Patience.seconds)
        return options
    }
}

extension ServerLimits {
    /// The limits of the daemon with times that never end during a test. A test of one of them sets
    /// it.
    static var patient: ServerLimits {
        var limits = ServerLimits()
        for time in [\ServerLimits.handshake, \.request, \.write, \.settingsAcknowledgement, \.idle, \.drain] {
            limits[keyPath: time] = .seconds(3600)
        }
        return limits
    }
}

/// A server on its own loop for the duration of a test.
struct TestServer: Sendable {
    let loop: EventLoop
    let server: LoopBound<HTTP2Server>
    let certificates: TestCertificates
    let port: UInt16
    let log: MemorySink
    private let clients = Shared<[LoopBound<HTTP2Client>]>([])

    static func with<Value>(
        limits: ServerLimits = .patient, proxies: Proxies = Proxies(), host: String = "127.0.0.1",
        tls: Bool = true, application: Application = .http2, crl: [UInt8]? = nil, admission: AdmissionControl? = nil,
        certificates: TestCertificates? = nil, origin: WebAddress? = nil, time: any TimeSource = SystemTime(),
        keeper: (@Sendable () -> any ServerController)? = nil,
        handler: @escaping @Sendable (Request) -> Reply,
        _ body: (TestServer) async throws -> Value
    ) async throws -> Value {
        let group = try LoopGroup.start(count: 1, time: time)
        defer { group.stopAndJoin() }
        let loop = group.loops[0]
        let certificates = try certificates ?? TestCertificates()
        let context = tls ? try certificates.serverContext(crl: crl, application: application) : nil
        let sink = MemorySink()
        let log = Log(minimum: .debug, sink: sink)
        let started = await loop.perform { () -> Result<LoopBound<HTTP2Server>, any Error> in
            Result {
                guard let address = SocketAddress(host: host, port: 0) else { throw SystemFailure("address", 0) }
                let server = try HTTP2Server(
                    loop: loop, address: address, tls: context, handler: TestHandler(handler), origin: origin,
                    keeper: keeper?(),
                    limits: limits, proxies: proxies, admission: admission, log: log)
                try server.start()
                return LoopBound(server, on: loop)
            }
        }
        let server = try started.get()
        let port = await loop.perform { server.value.port }
        let test = TestServer(loop: loop, server: server, certificates: certificates, port: port, log: sink)
        let result: Result<Value, any Error>
        do { result = .success(try await body(test)) } catch { result = .failure(error) }
        // Clients and server belong to the loop.
        await loop.perform {
            for client in test.clients.current { client.value.close() }
            server.value.stop()
        }
        return try result.get()
    }

    /// Connects a client on the loop of the server.
    func client(
        _ certificate: IssuedCertificate? = nil, tls: Bool = true, options: ClientOptions = .patient
    ) async throws -> TestClient {
        let context = tls ? try certificates.clientContext(certificate) : nil
        let (loop, port) = (loop, port)
        let client = await loop.perform {
            LoopBound(
                HTTP2Client(
                    loop: loop, host: "127.0.0.1", port: port, tls: context, options: options,
                    log: Log(sink: MemorySink())),
                on: loop)
        }
        let failure = await loop.perform { () -> ConnectionFailure? in
            do throws(ConnectionFailure) {
                try await client.value.connect()
                return nil
            } catch { return error }
        }
        clients.withLock { $0.append(client) }
        if let failure { throw failure }
        return await TestClient(loop: loop, client: client)
    }
}

struct TestClient: Sendable {
    let loop: EventLoop
    let client: LoopBound<HTTP2Client>
    private let state: Shared<ClientState>

    init(loop: EventLoop, client: LoopBound<HTTP2Client>) async {
        self.loop = loop
        self.client = client
        state = await loop.perform {
            let state = Shared(client.value.state)
            client.value.onStateChange = { now in state.withLock { $0 = now } }
            return state
        }
    }

    /// Returns when the connection is in this state.
    func isIn(_ wanted: ClientState) async { await state.until { $0 == wanted } }

    func send(
        _ method: String = "GET", _ path: String, fields: Fields = Fields(), body: [UInt8] = [],
        deadline: Duration = .seconds(Patience.seconds)
    ) async -> Result<Response, RequestFailure> {
        let request = ClientRequest(method: method, path: path, authority: "localhost", fields: fields, body: body)
        return await loop.perform { await client.value.send(request, deadline: deadline) }
    }

    /// Sends two requests in one turn of the loop. If one stream is allowed, the second waits.
    func sendBoth(
        deadlines first: Duration, _ second: Duration
    ) async -> (Result<Response, RequestFailure>, Result<Response, RequestFailure>) {
        let request = ClientRequest(method: "GET", path: "/", authority: "localhost")
        return await loop.perform {
            async let one = client.value.send(request, deadline: first)
            async let other = client.value.send(request, deadline: second)
            return (await one, await other)
        }
    }

    func perform<Value: Sendable>(_ body: @escaping @Sendable (HTTP2Client) -> Value) async -> Value {
        await loop.perform { body(client.value) }
    }
}
