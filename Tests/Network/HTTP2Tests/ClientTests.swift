import CLinux
import EventLoop
import Glibc
import HTTP
import Log
import TestSupport
import Testing
import World

@testable import HTTP2

private typealias Kind = RawPeer.Kind

/// A scripted server for one connection.
private struct RawServer {
    let port: UInt16
    private let fd: Int32

    init() {
        let fd = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                bind(fd, pointer, length) == 0 && listen(fd, 5) == 0 && getsockname(fd, pointer, &length) == 0
            }
        }
        precondition(bound)
        Patience.set(on: fd)
        self.fd = fd
        port = UInt16(bigEndian: address.sin_port)
    }

    func close() { Glibc.close(fd) }

    /// Accepts the next connection and reads its preface. Returns nil if no connection comes.
    func accept() -> RawPeer? {
        let accepted = Glibc.accept(fd, nil, nil)
        guard accepted >= 0 else { return nil }
        // A child process of another test must not inherit the descriptor, or the connection would
        // stay open after the close.
        _ = fcntl(accepted, F_SETFD, FD_CLOEXEC)
        let peer = RawPeer(fd: accepted)
        var preface = [UInt8](repeating: 0, count: 24)
        return recv(peer.fd, &preface, 24, Int32(MSG_WAITALL)) == 24 ? peer : nil
    }
}

/// Runs a client on its own loop against a scripted server.
@discardableResult
private func against<Value: Sendable>(
    options: ClientOptions = .patient, script: @escaping @Sendable (RawPeer) -> Void,
    _ body: (TestClient, Result<Void, ConnectionFailure>) async throws -> Value
) async throws -> Value {
    let server = RawServer()
    defer { server.close() }
    let group = try LoopGroup.start(count: 1, time: SystemTime())
    defer { group.stopAndJoin() }
    let loop = group.loops[0]
    // The script has its own thread, because blocking tasks can wait for a thread longer than the
    // client waits for an answer.
    let thread = try WorkerThread(name: "raw server")
    defer { thread.stop() }
    let served = Shared<Bool?>(nil)
    thread.post {
        let peer = server.accept()
        if let peer { script(peer) }
        served.withLock { $0 = peer != nil }
    }
    let client = await loop.perform {
        LoopBound(
            HTTP2Client(
                loop: loop, host: "127.0.0.1", port: server.port, tls: nil, options: options,
                log: Log(sink: MemorySink())),
            on: loop)
    }
    let connected = await loop.perform { () -> Result<Void, ConnectionFailure> in
        do throws(ConnectionFailure) { return .success(try await client.value.connect()) } catch {
            return .failure(error)
        }
    }
    let value = try await body(await TestClient(loop: loop, client: client), connected)
    await loop.perform { client.value.close() }
    await served.until { $0 != nil }
    #expect(served.current == true, "a connection that begins as HTTP/2 does")
    return value
}

extension RawPeer {
    /// Sends status 200 without a body.
    fileprivate func respond(_ stream: UInt32) {
        send(Kind.headers, flags: Self.endHeaders | Self.endStream, stream: stream, payload: [0x88])
    }

    fileprivate func goAway(last: UInt32, code: UInt32 = 0, debug: String = "") {
        let words = [last, code].flatMap { word in withUnsafeBytes(of: word.bigEndian) { Array($0) } }
        send(Kind.goAway, payload: words + Array(debug.utf8))
    }
}

struct ClientTests {
    @Test func streamsAboveGoAwayAreUnsentAndTheRestAreAnswered() async throws {
        try await against { peer in
            peer.send(Kind.settings)
            for _ in 0..<4 { _ = peer.next(Kind.headers) }
            peer.goAway(last: 3, debug: #"{"reason":"Shutdown"}"#)
            peer.respond(3)
            peer.respond(1)
            _ = peer.isEnded()
        } _: { client, connected in
            try connected.get()
            let results = await withTaskGroup(of: Result<Response, RequestFailure>.self) { group in
                for _ in 0..<4 { group.addTask { await client.send("GET", "/") } }
                return await group.reduce(into: []) { $0.append($1) }
            }
            let reason = #"GOAWAY 0: {"reason":"Shutdown"}"#
            #expect(results.filter { (try? $0.get().status) == 200 }.count == 2)
            #expect(results.filter { $0 == .failure(.notSent(reason)) }.count == 2)
            await client.isIn(.closed)
            #expect(await client.perform { $0.goAwayReason } == reason)
        }
    }

    /// A service does this when it lowers its limit while many requests are under way.
    @Test func goAwayWithLastStreamZeroRefusesAllRequests() async throws {
        let count = 600
        try await against { peer in
            peer.send(Kind.settings, payload: [0, 3, 0, 0, 4, 0])
            for _ in 0..<count { _ = peer.next(Kind.headers) }
            // The error code is REFUSED_STREAM.
            for number in 0..<count { peer.send(Kind.reset, stream: UInt32(2 * number + 1), payload: [0, 0, 0, 7]) }
            _ = peer.next(Kind.headers)
            peer.respond(UInt32(2 * count + 1))
            _ = peer.isEnded()
        } _: { client, connected in
            try connected.get()
            let results = await withTaskGroup(of: Result<Response, RequestFailure>.self) { group in
                for _ in 0..<count { group.addTask { await client.send("GET", "/") } }
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(results.filter { $0 == .failure(.notSent("refused")) }.count == count)
            #expect(try await client.send("GET", "/").get().status == 200)
        }
    }

    /// The server sends twice as many resets as the budget allows, all for one stream.
    @Test func serverThatKeepsResettingIsDisconnected() async throws {
        let count = 2 * ClientOptions().abuseCapacity / AbuseBudget.reset
        try await against { peer in
            peer.send(Kind.settings)
            _ = peer.next(Kind.headers)
            for _ in 0..<count where peer.send(Kind.reset, stream: 1, payload: [0, 0, 0, 7]) {}
            _ = peer.isEnded()
        } _: { client, connected in
            try connected.get()
            #expect(await (try? client.send("GET", "/").get()) == nil)
            await client.isIn(.closed)
        }
    }

    @Test func openRequestKeepsItsConnectionAfterGoAway() async throws {
        let ok = Response(status: 200)
        let waits = Shared<[TestWait]>([])
        try await TestServer.with { request in
            guard request.path == "/held" else { return .now(ok) }
            return .later(deadline: .seconds(Patience.seconds), late: { Response(status: 503) }) {
                let wait = TestWait()
                waits.withLock { $0.append(wait) }
                return .held(Hold(duration: .seconds(Patience.seconds), wait: wait) { .response(ok) })
            }
        } _: { server in
            let context = try server.certificates.clientContext(nil)
            let answer = Shared<Result<Response, RequestFailure>?>(nil)
            let (loop, port) = (server.loop, server.port)
            // This closure has the only reference to the client.
            let isSent = await loop.perform { () -> Bool in
                let client = HTTP2Client(
                    loop: loop, host: "127.0.0.1", port: port, tls: context, options: .patient,
                    log: Log(sink: MemorySink()))
                do throws(ConnectionFailure) { try await client.connect() } catch { return false }
                client.send(
                    ClientRequest(method: "GET", path: "/held", authority: "localhost"),
                    deadline: .seconds(Patience.seconds)
                ) { result in answer.withLock { $0 = result } }
                return true
            }
            try #require(isSent)
            await waits.until { $0.count == 1 }
            await waits.current[0].armed.until { $0 == 1 }
            // When another connection has an answer, the server would also have seen the end of
            // this one.
            #expect(try await server.client().send("GET", "/").get().status == 200)
            try #require(waits.current[0].cancelled.current == 0)
            waits.current[0].fire()
            await answer.until { $0 != nil }
            #expect(try answer.current?.get().status == 200)
        }
    }

    @Test func goAwayBeforeSettingsFailsTheConnection() async throws {
        try await against { peer in
            peer.goAway(last: 0, code: 11)
            _ = peer.isEnded()
        } _: { client, connected in
            #expect(throws: ConnectionFailure.self) { try connected.get() }
            #expect(await client.perform { $0.state } == .closed)
        }
    }

    @Test func requestsOverTheLimitWaitInOrder() async throws {
        let order = Shared<[UInt32]>([])
        try await against { peer in
            // The server allows one stream at a time.
            peer.send(Kind.settings, payload: [0, 3, 0, 0, 0, 1])
            for _ in 0..<5 {
                guard let frame = peer.next(Kind.headers) else { return }
                order.withLock { $0.append(frame.stream) }
                peer.respond(frame.stream)
            }
            _ = peer.isEnded()
        } _: { client, connected in
            try connected.get()
            #expect(await client.perform { $0.peerMaxConcurrentStreams } == 1)
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<5 {
                    group.addTask { #expect((try? await client.send("GET", "/").get().status) == 200) }
                }
            }
            #expect(order.current == [1, 3, 5, 7, 9])
        }
    }

    @Test func missingStreamLimitUsesOurDefault() async throws {
        var options = ClientOptions.patient
        options.maxStreams = 7
        try await against(options: options) { peer in
            peer.send(Kind.settings)
            _ = peer.isEnded()
        } _: { client, connected in
            try connected.get()
            #expect(await client.perform { $0.peerMaxConcurrentStreams } == 7)
        }
    }

    @Test func unansweredRequestIsResetAtTheDeadline() async throws {
        let resets = Shared<[RawPeer.Frame]>([])
        try await against { peer in
            peer.send(Kind.settings, payload: [0, 3, 0, 0, 0, 1])
            if let reset = peer.next(Kind.reset) { resets.withLock { $0.append(reset) } }
            // The reset frees the stream.
            if let head = peer.next(Kind.headers) { peer.respond(head.stream) }
            _ = peer.isEnded()
        } _: { client, connected in
            try connected.get()
            // A request that is still queued at its deadline was certainly not sent.
            let (first, queued) = await client.sendBoth(deadlines: .seconds(1), .milliseconds(10))
            #expect(first == .failure(.ambiguous("no answer in time")))
            #expect(queued == .failure(.notSent("no stream in time")))
            #expect(try await client.send("GET", "/").get().status == 200)
            #expect(resets.current.map(\.payload) == [[0, 0, 0, 8]])
        }
    }

    @Test func resetCodesAreDistinguished() async throws {
        try await against { peer in
            peer.send(Kind.settings)
            for code: UInt8 in [7, 2] {
                guard let frame = peer.next(Kind.headers) else { return }
                peer.send(Kind.reset, stream: frame.stream, payload: [0, 0, 0, code])
            }
            _ = peer.isEnded()
        } _: { client, connected in
            try connected.get()
            #expect(await client.send("GET", "/") == .failure(.notSent("refused")))
            #expect(await client.send("GET", "/") == .failure(.ambiguous("the stream ended with code 2")))
        }
    }

    @Test func brokenConnectionLeavesSentRequestsAmbiguous() async throws {
        try await against { peer in
            peer.send(Kind.settings, payload: [0, 3, 0, 0, 0, 1])
            _ = peer.next(Kind.headers)
        } _: { client, connected in
            try connected.get()
            let (sent, waiting) = await client.sendBoth(deadlines: .seconds(120), .seconds(120))
            guard case .failure(.ambiguous) = sent else {
                Issue.record("not ambiguous")
                return
            }
            guard case .failure(.notSent) = waiting else {
                Issue.record("not reported as not sent")
                return
            }
            #expect(await client.send("GET", "/") == .failure(.notSent("the connection is closed")))
        }
    }

    @Test func pingMeasuresTheRoundTrip() async throws {
        try await against { peer in
            peer.send(Kind.settings)
            if let ping = peer.next(Kind.ping) {
                peer.send(Kind.ping, flags: RawPeer.acknowledgement, payload: ping.payload)
            }
            _ = peer.isEnded()
        } _: { client, connected in
            try connected.get()
            let trip = await client.loop.perform { await client.client.value.ping() }
            #expect(trip.map { $0 > .zero } == true)
        }
    }

    @Test func unansweredPingIsReported() async throws {
        var options = ClientOptions.patient
        options.pingTimeout = .milliseconds(100)
        try await against(options: options) { peer in
            peer.send(Kind.settings)
            _ = peer.isEnded()
        } _: { client, connected in
            try connected.get()
            #expect(await client.loop.perform { await client.client.value.ping() } == nil)
        }
    }

    @Test func floodingServerIsDisconnected() async throws {
        try await against { peer in
            peer.send(Kind.settings)
            _ = peer.next { $0.type == Kind.settings && $0.flags == RawPeer.acknowledgement }
            let pings = (0..<100).flatMap { _ in RawPeer.frame(Kind.ping, payload: [UInt8](repeating: 1, count: 8)) }
            for _ in 0..<1000 where peer.send(pings) {}
        } _: { client, connected in
            try connected.get()
            await client.isIn(.closed)
        }
    }

    @Test func silentServerTimesOut() async throws {
        var options = ClientOptions.patient
        options.connectTimeout = .milliseconds(100)
        try await against(options: options) { peer in
            _ = peer.isEnded()
        } _: { _, connected in
            #expect(throws: ConnectionFailure.timedOut) { try connected.get() }
        }
    }

    /// The client is closed while the kernel connects, and no part of the connection remains.
    @Test func clientClosedWhileConnectingStaysClosed() async throws {
        let server = RawServer()
        defer { server.close() }
        let group = try LoopGroup.start(count: 1, time: SystemTime())
        defer { group.stopAndJoin() }
        let loop = group.loops[0]
        let address = try #require(SocketAddress(host: "127.0.0.1", port: server.port))
        let result = Shared<ConnectionFailure??>(.none)
        let client = await loop.perform { () -> LoopBound<HTTP2Client> in
            let client = LoopBound(
                HTTP2Client(loop: loop, host: "localhost", port: server.port, tls: nil, log: Log(sink: MemorySink())),
                on: loop)
            // This task runs until it waits for the kernel, whose report needs another turn of the
            // loop.
            loop.spawn {
                do throws(ConnectionFailure) {
                    try await client.value.connect(to: [address])
                    result.withLock { $0 = .some(nil) }
                } catch {
                    result.withLock { $0 = .some(error) }
                }
            }
            loop.spawn { client.value.close() }
            return client
        }
        await result.until { $0 != nil }
        #expect(result.current == .closed("closed"))
        #expect(await loop.perform { client.value.state } == .closed)
        #expect(await loop.perform { client.value.connection.link == nil })
    }

    /// A test or a program may drop its last reference on any thread, while the loop works.
    @Test func clientDroppedOffItsLoopClosesItsConnection() async throws {
        let ended = Shared<Bool?>(nil)
        let server = RawServer()
        defer { server.close() }
        let group = try LoopGroup.start(count: 1, time: SystemTime())
        defer { group.stopAndJoin() }
        let loop = group.loops[0]
        let thread = try WorkerThread(name: "raw server")
        defer { thread.stop() }
        thread.post {
            let peer = server.accept()
            peer?.send(Kind.settings)
            let isEnded = peer?.isEnded() ?? false
            ended.withLock { $0 = isEnded }
        }
        do {
            let port = server.port
            let client = await loop.perform {
                let log = Log(sink: MemorySink())
                return LoopBound(
                    HTTP2Client(loop: loop, host: "127.0.0.1", port: port, tls: nil, options: .patient, log: log),
                    on: loop)
            }
            let isConnected = await loop.perform { (try? await client.value.connect()) != nil }
            #expect(isConnected)
        }
        await ended.until { $0 != nil }
        #expect(ended.current == true)
    }

    @Test func refusedConnectionIsReported() async throws {
        let server = RawServer()
        server.close()
        let group = try LoopGroup.start(count: 1, time: SystemTime())
        defer { group.stopAndJoin() }
        let loop = group.loops[0]
        let failure = await loop.perform { () -> ConnectionFailure? in
            let client = HTTP2Client(
                loop: loop, host: "localhost", port: server.port, tls: nil, log: Log(sink: MemorySink()))
            do throws(ConnectionFailure) {
                try await client.connect()
                return nil
            } catch { return error }
        }
        #expect(failure == .connect("Connection refused"))
    }

    @Test func refusedCertificateIsATLSFailure() async throws {
        try await TestServer.with { _ in
            .now(Response(status: 200))
        } _: { server in
            let expired = try server.certificates.client(from: .seconds(-600), to: .seconds(-60))
            do {
                _ = try await server.client(expired)
                Issue.record("connected")
            } catch ConnectionFailure.tls(let reason) {
                #expect(reason.contains("expired"))
            }
        }
    }
}
