import Crypto
import EventLoop
import HTTP
import TestSupport
import Testing

@testable import HTTP2

private let ok = Response(status: 200, body: Array("ok".utf8))

struct RevokedConnectionTests {
    /// The connections of a name end, with their held requests. Connections with a valid key and
    /// those of other names stay open.
    @Test func connectionsOfARevokedKeyEnd() async throws {
        let waits = Shared<[TestWait]>([])
        let isRevoked = Shared(false)
        var limits = ServerLimits.patient
        // The answer to the held request must not race with the end of its connection.
        limits.drainStep = .seconds(Patience.seconds)
        try await TestServer.with(limits: limits) { request in
            guard request.path == "/held" else { return .now(ok) }
            return .later(deadline: .seconds(Patience.seconds), late: { Response(status: 503) }) {
                let wait = TestWait()
                waits.withLock { $0.append(wait) }
                return .held(
                    Hold(duration: .seconds(3600), wait: wait) {
                        .response(isRevoked.current ? Response(status: 401) : ok)
                    })
            }
        } _: { server in
            let (leaked, renewed) = (try server.certificates.client(), try server.certificates.client())
            let other = try server.certificates.client(names: [.uri("twoefay:website:bank")])
            let victim = try await server.client(leaked)
            let others = [try await server.client(renewed), try await server.client(other), try await server.client()]
            async let held = victim.send("GET", "/held")
            await waits.until { !$0.isEmpty }
            isRevoked.withLock { $0 = true }
            let kept = renewed.key.publicKey.spkiThumbprint
            let count = await server.loop.perform {
                server.server.value.endConnections(named: "twoefay:website:shop", keeping: [kept])
            }
            #expect(count == 1)
            #expect(try await held.get().status == 401)
            await victim.isIn(.closed)
            for client in others { #expect(try await client.send("GET", "/").get().status == 200) }
            // Closed connections are not counted again.
            while await server.loop.perform({ server.server.value.connectionCount }) > 3 { await Task.yield() }
            let rest = await server.loop.perform {
                server.server.value.endConnections(named: "twoefay:website:shop")
            }
            #expect(rest == 1)
            await others[0].isIn(.closed)
        }
    }
}
