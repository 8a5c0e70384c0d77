import EventLoop
import HTTP
import TestSupport
import Testing

@testable import HTTP2

private let ok = Response(status: 200, body: Array("ok".utf8))

struct DrainTests {
    /// Work that a request has started finishes before its resources are closed, even if the client
    /// has given up.
    @Test func drainWaitsForAbandonedWork() async throws {
        let work = HeldWork()
        try await TestServer.with { _ in
            work.reply(ok)
        } _: { server in
            let client = try await server.client()
            async let begun = client.send("GET", "/")
            await work.hasBegun()
            await client.perform { $0.close() }
            #expect(await begun == .failure(.ambiguous("closed")))
            let drained = await server.drain()
            while await server.loop.perform({ server.server.value.connectionCount }) > 0 { await Task.yield() }
            #expect(await server.loop.perform { drained.current } == false)
            work.end()
            await drained.until { $0 }
        }
    }

    /// Many clients give up all open requests at the first GOAWAY.
    @Test func openRequestsFinishBeforeTheFinalGoAway() async throws {
        let work = HeldWork()
        var limits = ServerLimits.patient
        limits.drainStep = .seconds(3600)
        try await TestServer.with(limits: limits) { request in
            request.path == "/slow" ? work.reply(ok) : .now(ok)
        } _: { server in
            let client = try await server.client()
            async let slow = client.send("GET", "/slow")
            await work.hasBegun()
            let drained = await server.drain()
            // While one request is open, the server accepts others.
            for _ in 0..<10 { #expect(try await client.send("GET", "/quick").get().status == 200) }
            #expect(!drained.current)
            work.end()
            #expect(try await slow.get().status == 200)
            await client.isIn(.closed)
            await drained.until { $0 }
        }
    }

    /// A client without streams that does not read delays the drain only by the time of its steps.
    @Test func unresponsiveClientIsClosedDuringDrain() async throws {
        var limits = ServerLimits.patient
        limits.drainStep = .milliseconds(10)
        try await TestServer.with(limits: limits, tls: false) { _ in
            .now(ok)
        } _: { server in
            let peer = RawPeer(port: server.port)
            while await server.loop.perform({ server.server.value.connectionCount }) == 0 { await Task.yield() }
            let drained = await server.drain()
            await drained.until { $0 }
            withExtendedLifetime(peer) {}
        }
    }

    /// A client that was accepted when the drain began, and has not sent its handshake. If it were
    /// cut off, a restart would be a failure to it. No step ends in this test.
    @Test(.mayBlock) func connectingClientReadsAGoAway() async throws {
        var limits = ServerLimits.patient
        limits.drainStep = .seconds(3600)
        try await TestServer.with(limits: limits) { _ in
            .now(ok)
        } _: { server in
            let (goAways, drained) = try await connectDuringDrain(server)
            // The notice, and the last one.
            #expect(goAways == 2)
            await drained.until { $0 }
        }
    }

    /// Connects, has the server drain, does the handshake, and answers each PING. The connection is
    /// closed on return.
    ///
    /// - Returns: the number of GOAWAY until the server has ended the connection.
    private func connectDuringDrain(_ server: TestServer) async throws -> (Int, Shared<Bool>) {
        let peer = RawPeer(port: server.port)
        while await server.loop.perform({ server.server.value.connectionCount }) == 0 { await Task.yield() }
        let drained = await server.drain()
        let client = try TLSPeer(peer, server)
        client.open()
        let (ping, goAway) = (RawPeer.Kind.ping, RawPeer.Kind.goAway)
        let payload = withUnsafeBytes(of: ServerConnection.drainPing) { Array($0) }
        var goAways = 0
        while let type = client.next([ping, goAway]) {
            if type == goAway {
                goAways += 1
            } else {
                client.send(RawPeer.frame(ping, flags: RawPeer.acknowledgement, payload: payload))
            }
        }
        return (goAways, drained)
    }
}
