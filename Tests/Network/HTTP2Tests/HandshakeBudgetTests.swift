import EventLoop
import Glibc
import HTTP
import Log
import TestSupport
import Testing
import World

@testable import HTTP2

/// Handshakes of one source at a real server over loopback: ten at once and one a second. The
/// server and the admission share a clock, which moves only when a test moves it.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct HandshakeBudgetTests {
    private let time = TestTime()
    private let limits: AdmissionLimits
    private let admission: AdmissionControl

    init() {
        var limits = AdmissionLimits(total: 160)
        limits.handshakesPerSecond = 1
        self.limits = limits
        admission = AdmissionControl(limits, time: time, log: Log(minimum: .debug, sink: MemorySink()))
    }

    private func served<Value>(_ body: (TestServer) async throws -> Value) async throws -> Value {
        // The clock advances to refill the budget, not to end connections.
        let value = try await TestServer.with(admission: admission, time: time) { _ in
            .now(Response(status: 200))
        } _: { server in
            try await body(server)
        }
        for kind in AdmissionControl.Kind.allCases { #expect(admission.open(kind) == 0, "\(kind)") }
        return value
    }

    private var putOff: Int { Int(admission.count(reason: "handshakes")) }

    private func arePutOff(_ count: Int) async {
        while putOff < count { await Task.yield() }
    }

    /// Advances the clock. When it returns, the loop has run its timers.
    private func pass(_ duration: Duration, _ server: TestServer) async {
        time.advance(by: duration)
        await server.loop.perform {}
    }

    private func begun(_ server: TestServer) async -> Int {
        await server.loop.perform { server.server.value.sessionCount }
    }

    /// Opens connections from 127.0.0.2 that have sent the first byte of a handshake.
    private func flood(_ server: TestServer, _ count: Int) -> [RawPeer] {
        (0..<count).map { _ in
            let peer = RawPeer(port: server.port, from: 0x7f00_0002)
            peer.send([0x16])
            return peer
        }
    }

    /// More clients than the budget allows connect at once from one address. All are served, and no
    /// sooner than the budget allows.
    @Test func handshakesOverTheBudgetArePutOff() async throws {
        let (burst, all) = (limits.handshakesAtOnce, limits.handshakesAtOnce + 8)
        try await served { server in
            let answers = Shared<[Bool]>([])
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<all {
                    group.addTask {
                        let client = try? await server.client()
                        let status = try? await client?.send("GET", "/").get().status
                        answers.withLock { $0.append(status == 200) }
                    }
                }
                await arePutOff(all - burst)
                for allowed in burst...all {
                    await answers.until { $0.count >= allowed }
                    #expect(await begun(server) == allowed)
                    #expect(admission.open(.unidentified) == all)
                    await pass(.seconds(1), server)
                }
            }
            #expect(answers.current == Array(repeating: true, count: all))
            #expect(putOff == all - burst)
        }
    }

    @Test func emptyBudgetDelaysOnlyItsSource() async throws {
        let burst = limits.handshakesAtOnce
        try await served { server in
            let peers = flood(server, burst + 6)
            await arePutOff(6)
            let client = try await server.client()
            #expect(try await client.send("GET", "/").get().status == 200)
            #expect(await begun(server) == burst + 1)
            withExtendedLifetime(peers) {}
        }
    }

    @Test func clientThatGivesUpCostsNoHandshake() async throws {
        let burst = limits.handshakesAtOnce
        try await served { server in
            let gone = flood(server, burst + 6)
            await arePutOff(6)
            for peer in gone {
                shutdown(peer.fd, Int32(SHUT_WR))
                #expect(peer.isEnded())
            }
            await pass(.seconds(1), server)
            // The budget still has the handshake of this second.
            let peers = flood(server, 1)
            while await begun(server) == 0, putOff == 6 { await Task.yield() }
            #expect(putOff == 6)
            withExtendedLifetime(peers) {}
        }
    }

    /// The first byte and the end arrive together, before the server looks at the connection.
    @Test func clientThatGivesUpAtOnceCostsNoHandshake() async throws {
        try await served { server in
            let gone = (0..<limits.handshakesAtOnce + 6).map { _ in RawPeer(port: server.port, from: 0x7f00_0002) }
            let descriptors = gone.map(\.fd)
            // The loop reads no connection before this closure returns.
            await server.loop.perform {
                for fd in descriptors {
                    _ = send(fd, [0x16], 1, 0)
                    shutdown(fd, Int32(SHUT_WR))
                }
            }
            for peer in gone { #expect(peer.isEnded()) }
            #expect(await begun(server) == 0 && putOff == 0)
            let client = try await server.client()
            #expect(try await client.send("GET", "/").get().status == 200)
        }
    }

    /// The clock moves only by the step that a drain leaves to clients who are connecting, so a
    /// server that waits for another timer would never end.
    @Test(arguments: [true, false]) func waitingConnectionsEndWithTheServer(drains: Bool) async throws {
        // `@unchecked Sendable`: a weak reference is read atomically, and the server is not called
        // through it.
        struct Remains: @unchecked Sendable { weak var server: HTTP2Server? }
        let remains = try await served { server in
            let peers = flood(server, limits.handshakesAtOnce + 6)
            await arePutOff(6)
            let ended = Shared(false)
            await server.loop.perform {
                guard drains else {
                    server.server.value.stop()
                    ended.withLock { $0 = true }
                    return
                }
                server.server.value.drain { ended.withLock { $0 = true } }
            }
            if drains { await pass(ServerLimits.patient.drainStep, server) }
            await ended.until { $0 }
            for peer in peers { #expect(peer.isEnded()) }
            return await server.loop.perform { Remains(server: server.server.value) }
        }
        #expect(remains.server == nil)
    }
}
