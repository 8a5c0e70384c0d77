import CLinux
import EventLoop
import Glibc
import HTTP
import HTTP1
import Log
import Synchronization
import TestSupport
import Testing
import World

/// A server on a Unix socket, and callers who leave before their answer.
@Suite(.timeLimit(.minutes(15))) struct UnixSocketTests {
    /// Listens at the path, as the sidecar and systemd do.
    private static func listen(_ path: String) throws -> Int32 {
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let fd = socket(AF_UNIX, kind, 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
        let bound = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(fd, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        try #require(bound == 0 && Glibc.listen(fd, 16) == 0)
        return fd
    }

    private static func serve(
        _ pages: any Pages, _ body: (@Sendable (String, String...) async throws -> Child.Ended) async throws -> Void
    ) async throws {
        let directory = try TemporaryDirectory()
        let path = directory("socket")
        let fd = try listen(path)
        try await withLoop { loop in
            let server = try await loop.perform { () -> Result<LoopBound<HTTP1Server>, SystemFailure> in
                Result { () throws(SystemFailure) in
                    let server = try HTTP1Server(
                        loop: loop, socket: try ListeningSocket(unix: fd), pages: pages, log: Log(minimum: .error))
                    try server.start()
                    return LoopBound(server, on: loop)
                }
            }.get()
            try await body { url, arguments throws in
                try await Child.run(
                    "curl", ["--silent", "--include", "--max-time", "60", "--unix-socket", path, url] + arguments)
            }
            await loop.perform { server.value.stop() }
        }
    }

    @Test func namesOfThisMachineNeedNoPort() async throws {
        try await Self.serve(Mirror()) { curl in
            for host in ["localhost", "127.0.0.1", "[::1]", "localhost:80"] {
                let got = try await curl("http://\(host)/path", "--data", "text")
                #expect(got.output.hasPrefix("HTTP/1.1 200") && got.output.contains("POST [/path]"), "\(got)")
                #expect(got.output.hasSuffix("\ntext"))
            }
            for host in ["localhost:81", "evil.example", "[::]"] {
                let got = try await curl("http://\(host)/")
                #expect(got.output.hasPrefix("HTTP/1.1 421") && got.output.contains("http://localhost/"), "\(got)")
            }
        }
    }

    @Test func onlyUnixSocketsAreTakenOver() throws {
        let fd = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(fd) }
        #expect(throws: SystemFailure.self) { _ = try ListeningSocket(unix: fd) }
    }

    /// The caller gives up after its time, and the work for it is cancelled. Without that, the test
    /// would wait for ever.
    @Test func workEndsWithItsCaller() async throws {
        let pages = PatientPages()
        try await Self.serve(pages) { curl in
            let got = try await curl("http://localhost/", "--max-time", "1")
            #expect(got.status == 28, "\(got)")
            await pages.cancelled()
            #expect(try await curl("http://localhost/now").output.hasPrefix("HTTP/1.1 204"))
        }
    }
}

/// Pages that answer `/` only when the task is cancelled.
private final class PatientPages: Pages {
    private let ended = AsyncStream<Void>.makeStream()

    var endsWithCaller: Bool { true }

    func answer(_ request: Request) async -> Response {
        guard request.path == "/" else { return Response(status: 204) }
        let never = AsyncStream<Void>.makeStream()
        for await _ in never.stream {}
        if Task.isCancelled { ended.continuation.yield() }
        return Response(status: 204)
    }

    func cancelled() async {
        for await _ in ended.stream { return }
    }
}
