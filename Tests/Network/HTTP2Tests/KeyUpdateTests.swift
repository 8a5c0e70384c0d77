import EventLoop
import HTTP
import Log
import TestSupport
import Testing

@testable import HTTP2
@testable import TLS

private typealias Kind = RawPeer.Kind

/// Clients that update their TLS keys again and again.
@Suite(.mayBlock) struct KeyUpdateTests {
    /// A TLS client on a blocking socket.
    private final class Client {
        private let peer: RawPeer
        let tls: TLSSession
        private var scanner = FrameScanner(skipping: 0)
        private var received: [UInt8] = []

        init(_ server: TestServer) throws {
            peer = RawPeer(port: server.port)
            tls = try TLSSession(client: server.certificates.clientContext(nil), fd: peer.fd, host: "localhost")
            guard case .complete = tls.handshake() else { throw SystemFailure("handshake", 0) }
        }

        func send(_ bytes: [UInt8]) { _ = bytes.withUnsafeBytes { tls.write($0) } }

        /// Returns the type of the next frame whose type is in `types`, or nil at the end.
        func next(_ types: [UInt8]) -> UInt8? {
            while true {
                while !received.isEmpty {
                    let type = received.removeFirst()
                    if types.contains(type) { return type }
                }
                guard read() else { return nil }
            }
        }

        private func read() -> Bool {
            withUnsafeTemporaryAllocation(byteCount: 32_768, alignment: 1) { buffer in
                guard case .bytes(let count) = tls.read(into: buffer) else { return false }
                var at = 0
                while let head = scanner.next(UnsafeRawBufferPointer(rebasing: buffer[..<count]), &at) {
                    received.append(head.type)
                }
                return true
            }
        }
    }

    @Test func keyUpdateFloodEndsTheConnection() async throws {
        // The clock of the server does not move, so the budget does not refill.
        try await TestServer.with(time: TestTime()) { _ in
            .now(Response(status: 200))
        } _: { server in
            let client = try Client(server)
            client.send(Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + RawPeer.frame(Kind.settings))
            client.send(RawPeer.frame(Kind.settings, flags: RawPeer.acknowledgement))
            var (updates, heard) = (0, UInt8?.some(Kind.ping))
            while heard == Kind.ping, updates < 2000 {
                for _ in 0..<20 { #expect(client.tls.updateKeys()) }
                updates += 20
                client.send(RawPeer.frame(Kind.ping, payload: [UInt8](repeating: 1, count: 8)))
                heard = client.next([Kind.ping, Kind.goAway])
            }
            #expect(heard == Kind.goAway)
            #expect(updates <= 300)
            #expect(server.log.lines.contains { $0.contains("connection.abuse") })
        }
    }
}
