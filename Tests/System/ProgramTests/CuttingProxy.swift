import Glibc
import TestSupport

/// A proxy on loopback that passes on bytes between a client and a server, and cuts each connection
/// once it has passed on `limit` bytes of the server: the server dies in the middle of its answer.
final class CuttingProxy: Sendable {
    let port: UInt16
    private let child: Child

    /// - Parameter limit: nil passes on everything.
    init(to server: UInt16, limit: Int?) async throws {
        child = try Child("/usr/bin/python3", ["-c", Self.script, "\(server)", "\(limit ?? -1)"])
        let line = try await child.line(.output, with: "port ")
        guard let port = UInt16(line.dropFirst(5)) else { throw Child.Problem(description: "no port: \(line)") }
        self.port = port
    }

    deinit { child.signal(SIGKILL) }

    /// Returns how many bytes of the server the first connection has passed on, when it has ended.
    func passed() async throws -> Int {
        let line = try await child.line(.output, with: "passed ")
        guard let count = Int(line.dropFirst(7)) else { throw Child.Problem(description: "no number: \(line)") }
        return count
    }

    private static let script = """
        import socket, sys, threading
        server, limit = int(sys.argv[1]), int(sys.argv[2])
        listener = socket.create_server(("127.0.0.1", 0))
        print("port", listener.getsockname()[1], flush=True)
        def up(client, upstream):
            try:
                while data := client.recv(65536):
                    upstream.sendall(data)
                upstream.shutdown(socket.SHUT_WR)
            except OSError:
                pass
        while True:
            client, _ = listener.accept()
            upstream = socket.create_connection(("127.0.0.1", server))
            threading.Thread(target=up, args=(client, upstream), daemon=True).start()
            passed = 0
            try:
                while data := upstream.recv(1024 if limit < 0 else min(1024, max(1, limit - passed))):
                    client.sendall(data)
                    passed += len(data)
                    if passed == limit:
                        break
            except OSError:
                pass
            for end in client, upstream:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                end.close()
            print("passed", passed, flush=True)
        """
}
