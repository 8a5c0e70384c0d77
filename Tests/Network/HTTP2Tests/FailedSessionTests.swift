import HTTP
import Synchronization
import TestSupport
import Testing

@testable import HTTP2

/// The connections of a loop share the memory for events.
struct FailedSessionTests {
    /// A request before frames that libnghttp2 refuses is dropped. It must not be taken for one of
    /// another connection, which may have a certificate.
    @Test(arguments: [false, true]) func requestsOfAFailedConnectionAreDropped(byPings: Bool) async throws {
        let count = Mutex(0)
        try await TestServer.with(tls: false) { _ in
            count.withLock { $0 += 1 }
            return .now(Response(status: 200))
        } _: { server in
            let port = server.port
            let isAlive = await blocking {
                let idle = RawPeer(port: port)
                idle.open()
                idle.request(1)
                guard idle.next(RawPeer.Kind.headers) != nil else { return false }
                let failing = RawPeer(port: port)
                failing.open()
                let request = RawPeer.frame(
                    RawPeer.Kind.headers, flags: RawPeer.endHeaders | RawPeer.endStream, stream: 1,
                    payload: RawPeer.requestHead())
                let refused =
                    byPings
                    ? [[UInt8]](
                        repeating: RawPeer.frame(RawPeer.Kind.ping, payload: [UInt8](repeating: 7, count: 8)),
                        count: 129)
                    : [RawPeer.frame(RawPeer.Kind.headers, stream: 3, payload: RawPeer.requestHead())]
                        + [[UInt8]](repeating: RawPeer.frame(9, stream: 3), count: 9)
                failing.send(request + refused.joined())
                guard failing.isEnded() else { return false }
                idle.send(RawPeer.Kind.ping, payload: [UInt8](repeating: 1, count: 8))
                return idle.next(RawPeer.Kind.ping) != nil
            }
            #expect(isAlive)
            #expect(count.withLock { $0 } == 1)
        }
    }
}
