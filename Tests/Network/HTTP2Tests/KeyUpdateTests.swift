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
    @Test func keyUpdateFloodEndsTheConnection() async throws {
        // The clock of the server does not move, so the budget does not refill.
        try await TestServer.with(time: TestTime()) { _ in
            .now(Response(status: 200))
        } _: { server in
            let client = try TLSPeer(RawPeer(port: server.port), server)
            client.open()
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
