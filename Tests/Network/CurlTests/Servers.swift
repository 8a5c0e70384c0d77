import Crypto
import EventLoop
import Glibc
import HTTP
import HTTP2
import Log
import Synchronization
import TLS
import TestSupport
import Testing
import World

@testable import Curl

let timeout = Duration.seconds(120)

/// A handler that answers with the test's closure.
struct Answering: Handler {
    let body: @Sendable (Request) -> Reply

    func handle(_ request: Request) -> Reply { body(request) }
}

/// Clients and servers on their own loop for the duration of a test.
struct Fixture: Sendable {
    let loop: EventLoop
    let certificates: TestCertificates

    static func with<Value: Sendable>(_ body: (Fixture) async throws -> Value) async throws -> Value {
        let group = try LoopGroup.start(count: 1, time: SystemTime())
        defer { group.stopAndJoin() }
        return try await body(Fixture(loop: group.loops[0], certificates: try TestCertificates()))
    }

    /// Runs an HTTP/2 server over TLS for the duration of `body`.
    func serving<Value: Sendable>(
        _ answer: @escaping @Sendable (Request) -> Reply, keeper: LoopBound<SilentStart>? = nil,
        _ body: (LoopBound<HTTP2Server>, UInt16) async throws -> Value
    ) async throws -> Value {
        let tls = try certificates.serverContext()
        let address = try #require(SocketAddress(host: "127.0.0.1", port: 0))
        let started = await loop.perform { [loop] in
            Result { () throws -> (LoopBound<HTTP2Server>, UInt16) in
                let server = try HTTP2Server(
                    loop: loop, address: address, tls: tls, handler: Answering(body: answer), keeper: keeper?.value,
                    log: Log(sink: MemorySink()))
                try server.start()
                return (LoopBound(server, on: loop), server.port)
            }
        }
        let (server, port) = try started.get()
        let result: Result<Value, any Error>
        do { result = .success(try await body(server, port)) } catch { result = .failure(error) }
        await loop.perform { server.value.stop() }
        return try result.get()
    }

    /// Runs a server without TLS that sends these bytes to each client after the client's first
    /// bytes.
    func speaking<Value: Sendable>(
        _ bytes: String, again: Bool = false, _ body: (LoopBound<RawServer>, UInt16) async throws -> Value
    ) async throws -> Value {
        let started = await loop.perform { [loop] in
            Result { () throws -> (LoopBound<RawServer>, UInt16) in
                let server = try RawServer(loop: loop, Array(bytes.utf8), again: again)
                return (LoopBound(server, on: loop), server.port)
            }
        }
        let (server, port) = try started.get()
        let result: Result<Value, any Error>
        do { result = .success(try await body(server, port)) } catch { result = .failure(error) }
        await loop.perform { server.value.close() }
        return try result.get()
    }

    /// Creates a client and passes it to `body`.
    func sending<Value: Sendable>(
        _ change: @escaping @Sendable (inout WebClientOptions) -> Void = { _ in },
        _ body: @escaping @Sendable (WebClient) async -> Value
    ) async throws -> Value {
        let trust = certificates.websites.certificatePEM
        let pem = try trust()
        let result = await loop.perform { [loop] () async -> Result<Value, any Error> in
            var options = WebClientOptions()
            options.addresses = .none
            options.extraTrust = pem
            options.connectTimeout = timeout
            change(&options)
            do {
                let client = try WebClient(loop: loop, options: options)
                let value = await body(client)
                client.close()
                return .success(value)
            } catch { return .failure(error) }
        }
        return try result.get()
    }
}

/// A controller whose server never answers on its first connection.
final class SilentStart: ServerController {
    private(set) var connections = 0
    /// Called when a request arrives on the first connection.
    var heard: () -> Void = {}

    func admit(_ number: Int) -> Admission {
        connections = number
        return .serve
    }

    func opened(_ connection: ServerConnection) -> any ConnectionController {
        Line(self, isSilent: connection.number == 1)
    }

    private final class Line: ConnectionController {
        let start: SilentStart
        let isSilent: Bool

        init(_ start: SilentStart, isSilent: Bool) { (self.start, self.isSilent) = (start, isSilent) }

        func handle(_ request: Request, stream: Int32) -> Reply? {
            guard isSilent else { return .now(Response(status: 200)) }
            start.heard()
            return nil
        }
        func closed(stream: Int32) {}
        func ended() {}
    }
}

/// A server that sends fixed bytes to each client after the client's first bytes, once or
/// repeatedly.
final class RawServer {
    private let loop: EventLoop
    private let listener: Listener
    private let bytes: [UInt8]
    private let again: Bool
    private var watches: [Int32: DescriptorWatcher] = [:]
    private(set) var connections = 0
    private(set) var heard: [UInt8] = []
    /// Called when a client has sent bytes.
    var spoken: () -> Void = {}

    init(loop: EventLoop, _ bytes: [UInt8], again: Bool) throws {
        self.loop = loop
        self.bytes = bytes
        self.again = again
        let address = try #require(SocketAddress(host: "127.0.0.1", port: 0))
        listener = try Listener(loop: loop, address: address)
        try listener.start(
            accepted: { [weak self] fd, _ in if let self { take(fd) } else { Glibc.close(fd) } }, exhausted: { _ in })
    }

    var port: UInt16 { listener.address.port }

    private func take(_ fd: Int32) {
        connections += 1
        watches[fd] = try? loop.watch(fd: fd, .read) { [weak self] in self?.act(fd, $0) }
    }

    private func act(_ fd: Int32, _ readiness: Readiness) {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        var isOver = false
        if readiness.contains(.read) {
            let count = recv(fd, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            isOver = count == 0
            if count > 0 {
                heard += buffer[..<count]
                spoken()
                if again { watches[fd]?.change([.read, .write]) } else { say(fd) }
            }
        }
        if readiness.contains(.write) { say(fd) }
        guard isOver || !readiness.isDisjoint(with: [.hangUp, .failed]) else { return }
        watches.removeValue(forKey: fd)?.cancel()
        Glibc.close(fd)
    }

    private func say(_ fd: Int32) {
        if !bytes.isEmpty {
            _ = send(fd, bytes, bytes.count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
        }
    }

    func close() {
        listener.close()
        for (fd, watch) in watches {
            watch.cancel()
            Glibc.close(fd)
        }
        watches = [:]
    }
}
