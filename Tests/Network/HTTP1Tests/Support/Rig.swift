import EventLoop
import HTTP
import HTTP1
import Log
import Synchronization
import TestSupport
import World

/// An HTTP/1 server on a real loop.
final class Rig: Sendable {
    let sink = MemorySink()
    let port: UInt16
    private let group: LoopGroup
    private let server: LoopBound<HTTP1Server>
    private let isStopped = Mutex(false)

    init(_ pages: any Pages, host: String = "127.0.0.1", limits: PageLimits = PageLimits()) async throws {
        group = try LoopGroup.start(count: 1, time: SystemTime())
        let loop = group.loops[0]
        let log = Log(minimum: .debug, sink: sink)
        let started = await loop.perform { () -> Result<(LoopBound<HTTP1Server>, UInt16), any Error> in
            Result {
                guard let address = SocketAddress(host: host, port: 0) else { throw RigFailure("no address: \(host)") }
                let server = try HTTP1Server(loop: loop, address: address, pages: pages, limits: limits, log: log)
                try server.start()
                return (LoopBound(server, on: loop), server.port)
            }
        }
        do {
            (server, port) = try started.get()
        } catch {
            group.stopAndJoin()
            throw error
        }
    }

    func stop() async {
        guard
            !isStopped.withLock({ stopped in
                defer { stopped = true }
                return stopped
            })
        else { return }
        await group.loops[0].perform { [server] in server.value.stop() }
    }

    deinit {
        group.loops[0].post { [server] in server.value.stop() }
        group.stopAndJoin()
    }

    /// Returns the output of curl: status line, fields and body.
    func curl(_ path: String, _ arguments: String...) async throws -> Child.Ended {
        try await Child.run(
            "curl",
            ["--silent", "--show-error", "--include", "--max-time", "60"] + arguments
                + ["http://127.0.0.1:\(port)\(path)"])
    }

    /// Sends these bytes and returns everything that the server sends until it closes or resets the
    /// connection.
    func raw(_ text: String, halfClose: Bool = false) async throws -> Child.Ended {
        let script = """
            import socket, sys
            line = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=60)
            try:
                line.sendall(sys.argv[2].encode("latin-1"))
                if sys.argv[3] == "1": line.shutdown(socket.SHUT_WR)
                while True:
                    part = line.recv(65536)
                    if not part: break
                    sys.stdout.write(part.decode("latin-1"))
            except TimeoutError: raise
            except OSError: pass
            """
        return try await Child.run("python3", ["-c", script, "\(port)", text, halfClose ? "1" : "0"])
    }
}

/// A handler that answers with the test's closure.
struct FixedPages: Pages {
    let make: @Sendable (Request) async -> Response

    func answer(_ request: Request) async -> Response { await make(request) }
}

/// A handler that returns a description of the request.
struct Mirror: Pages {
    func answer(_ request: Request) async -> Response {
        let fields = request.fields.all.map { "\($0.name)=\($0.value);" }.joined()
        let text = "\(request.method) [\(request.path)] [\(request.query ?? "-")] \(fields) \(request.remote)\n"
        return Response(
            status: 200, fields: Fields([Fields.Field("content-type", "text/plain")]),
            body: Array(text.utf8) + request.body)
    }
}
