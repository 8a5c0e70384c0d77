import CLinux
import EventLoop
import HTTP
import Log
import TestSupport
import Testing

@testable import HTTP2

/// The memory that this process has allocated. A type has the same name as the function.
private func allocatedBytes() -> Int { Int((mallinfo2 as () -> mallinfo2)().uordblks) }

/// Clients of HTTP/1.1 that cost more than their requests. The clock of the server moves only when
/// a test moves it.
@Suite(.timeLimit(.minutes(10)), .mayBlock) struct HTTP1AbuseTests {
    private func served(
        admission: AdmissionControl? = nil, time: TestTime = TestTime(), _ body: (TestServer) async throws -> Void
    ) async throws {
        try await TestServer.withHTTP1(limits: ServerLimits(), admission: admission, time: time) { request in
            .now(Response(status: 200, body: request.path == "/large" ? [UInt8](repeating: 1, count: 4_000_000) : []))
        } _: { server in
            try await body(server)
        }
    }

    // MARK: Uploads that are too large

    /// A client that reads no answer before it has written everything, however slowly.
    @Test func slowUploadIsReadToItsEnd() async throws {
        let time = TestTime()
        try await served(time: time) { server in
            let (slow, other) = (try HTTP1Peer(server), try HTTP1Peer(server))
            slow.request("POST", "/", "Content-Length: 300000\r\n")
            for _ in 0..<50 {
                #expect(slow.send([UInt8](repeating: 97, count: 6000)))
                other.passTurn()
                time.advance(by: .seconds(1))
            }
            let answer = try #require(slow.answer())
            #expect(answer.status == 413 && answer.closes)
            #expect(slow.isEnded() && slow.end == .closed)
        }
    }

    @Test func uploadThatIsTooLargeEndsAfter60Seconds() async throws {
        let time = TestTime()
        try await served(time: time) { server in
            let (slow, other) = (try HTTP1Peer(server), try HTTP1Peer(server))
            slow.request("POST", "/", "Content-Length: 300000\r\n")
            #expect(slow.answer()?.status == 413)
            var seconds = 0
            while !slow.hasInput, seconds < 100 {
                slow.send("a")
                other.passTurn()
                seconds += 1
                time.advance(by: .seconds(1))
            }
            #expect((60...62).contains(seconds), "\(seconds)")
            #expect(slow.isEnded())
        }
    }

    /// The server drops 1 MiB of the body, and then as much after the end of its side. The rest of
    /// what the client can send fits into the buffers of the sockets.
    @Test func uploadEndsBeyondTheDiscardLimits() async throws {
        try await served { server in
            let peer = try HTTP1Peer(server)
            let (size, part) = (100_000_000, [UInt8](repeating: 97, count: 16_384))
            peer.request("POST", "/", "Content-Length: \(size)\r\n")
            #expect(peer.answer()?.status == 413)
            var sent = 0
            while sent < size, peer.send(part) { sent += part.count }
            #expect(sent > 2_000_000 && sent < size, "\(sent)")
        }
    }

    @Test func drainEndsAnUploadThatIsTooLarge() async throws {
        let time = TestTime()
        try await served(time: time) { server in
            let peer = try HTTP1Peer(server)
            peer.request("POST", "/", "Content-Length: 300000\r\n")
            #expect(peer.answer()?.status == 413)
            let drained = await server.drain()
            await server.pass(ServerLimits().drainStep, of: time)
            #expect(peer.isEnded())
            while !drained.current { await server.pass(.seconds(1), of: time) }
        }
    }

    // MARK: Time and work

    @Test func clientThatReadsNothingIsReset() async throws {
        let time = TestTime()
        try await served(time: time) { server in
            let deaf = try HTTP1Peer(server, receiveBuffer: 4096)
            deaf.request("GET", "/large")
            try HTTP1Peer(server).passTurn()
            time.advance(by: .seconds(29))
            try HTTP1Peer(server).passTurn()
            #expect(!deaf.isReset)
            // A part that the sockets took late counts as progress, so that it may take several times.
            for _ in 0..<20 where !deaf.isReset {
                time.advance(by: .seconds(31))
                try HTTP1Peer(server).passTurn()
            }
            #expect(deaf.isReset)
        }
    }

    /// HTTP/2 refuses such a stream, which tells the client that nothing was done.
    @Test func requestBeyondTheWorkInFlightIsAnswered() async throws {
        var limits = ServerLimits.patient
        limits.inFlight = 1
        let work = HeldWork()
        let handled = Shared(0)
        try await TestServer.withHTTP1(limits: limits) { request in
            handled.withLock { $0 += 1 }
            // It is answered at its deadline, and its work goes on.
            return .later(deadline: .milliseconds(1), late: { Response(status: 504) }) {
                await work.run()
                return .response(Response(status: 200))
            }
        } _: { server in
            defer { work.end() }
            let peer = try HTTP1Peer(server)
            peer.request()
            #expect(peer.answer()?.status == 504)
            peer.request()
            let answer = try #require(peer.answer())
            #expect(answer.status == 503 && answer.closes)
            #expect(peer.isEnded())
            #expect(handled.current == 1)
        }
    }

    // MARK: The abuse budget

    /// A head of 30,000 bytes costs 25 points of 2,000, and its answer earns two.
    @Test func largeHeadsUseUpTheBudget() async throws {
        try await served { server in
            let peer = try HTTP1Peer(server)
            let field = "A: \(String(repeating: "b", count: 30_000))\r\n"
            var count = 0
            while count < 200 {
                peer.request("GET", "/", field)
                guard peer.answer() != nil else { break }
                count += 1
            }
            #expect((2000 / 25...2000 / 22).contains(count), "\(count)")
            #expect(peer.end != .late)
            #expect(server.log.lines.contains { $0.contains("connection.abuse") })
        }
    }

    /// A change of keys costs ten points.
    @Test func keyUpdatesUseUpTheBudget() async throws {
        try await served { server in
            let peer = try HTTP1Peer(server)
            var updates = 0
            while updates < 2000 {
                for _ in 0..<20 { _ = peer.updateKeys() }
                updates += 20
                peer.request()
                guard peer.answer() != nil else { break }
            }
            #expect((200...300).contains(updates), "\(updates)")
            #expect(peer.end != .late)
            #expect(server.log.lines.contains { $0.contains("connection.abuse") })
        }
    }

    // MARK: Admission

    @Test func connectionsOfAWebsiteAreLimited() async throws {
        let time = TestTime()
        let limits = AdmissionLimits(total: 64)
        let admission = AdmissionControl(limits, time: time, log: Log(sink: MemorySink()))
        try await served(admission: admission, time: time) { server in
            let certificate = try server.certificates.client()
            var peers: [HTTP1Peer] = []
            for _ in 0..<limits.perWebsite + 3 {
                let peer = try HTTP1Peer(server, certificate: certificate)
                peer.request()
                #expect(peer.answer()?.status == 200)
                peers.append(peer)
            }
            #expect(admission.open(.website) == limits.perWebsite && admission.open(.unidentified) == 3)
            #expect(admission.count(reason: "websites") == 3)
            withExtendedLifetime(peers) {}
        }
    }

    /// A connection that waits until its client has read the alert has no TLS session any more, and
    /// makes room for newer ones.
    @Test func failedHandshakesMakeRoomForOthers() async throws {
        let time = TestTime()
        var limits = AdmissionLimits(total: 160)
        limits.perSource = 5
        let admission = AdmissionControl(limits, time: time, log: Log(sink: MemorySink()))
        try await served(admission: admission, time: time) { server in
            let failed = (0..<20).map { _ in
                let peer = RawPeer(port: server.port)
                peer.send(Array("GET / HTTP/1.1\r\n\r\n".utf8))
                #expect(peer.isEnded())
                return peer
            }
            await server.hasConnections(5)
            #expect(admission.open(.unidentified) == 5 && admission.count(reason: "source") == 15)
            #expect(await server.loop.perform { server.server.value.sessionCount } == 0)
            let peer = try HTTP1Peer(server)
            peer.request()
            #expect(peer.answer()?.status == 200)
            withExtendedLifetime(failed) {}
        }
    }

    // MARK: Memory

    /// Measures the memory that a held request keeps beyond its idle connection, in a process that does
    /// nothing else.
    @Test(.enabled(if: !Sanitizer.isOn)) func heldRequestTakesLessThan2KiB() async {
        await #expect(processExitsWith: .success) {
            let count = 200
            let holds = Shared(0)
            try await TestServer.withHTTP1 { request in
                guard request.path == "/held" else { return .now(Response(status: 200)) }
                return .later(deadline: .seconds(3600), late: { Response(status: 503) }) {
                    holds.withLock { $0 += 1 }
                    return .held(Hold(duration: .seconds(3600), wait: TestWait()) { .response(Response(status: 200)) })
                }
            } _: { server in
                let peers = try (0..<count).map { _ in try HTTP1Peer(server) }
                for peer in peers { peer.passTurn() }
                let before = await server.loop.perform { allocatedBytes() }
                for peer in peers { peer.request("GET", "/held", "Prefer: wait=60\r\n") }
                await holds.until { $0 == count }
                let after = await server.loop.perform { allocatedBytes() }
                let each = (after - before) / count
                precondition((500...2048).contains(each), "\(each) bytes")
                withExtendedLifetime(peers) {}
            }
        }
    }
}
