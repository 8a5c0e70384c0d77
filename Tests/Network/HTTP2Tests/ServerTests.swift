import EventLoop
import Glibc
import HTTP
import TestSupport
import Testing

@testable import HTTP2

private func text(_ text: String) -> [UInt8] { Array(text.utf8) }
private let ok = Response(status: 200, body: text("ok"))

struct ServerTests {
    @Test func oversizedBodyIsAnswered413() async throws {
        let handled = Shared(0)
        try await TestServer.with { _ in
            handled.withLock { $0 += 1 }
            return .now(ok)
        } _: { server in
            let client = try await server.client()
            // The first body announces its length. The second exceeds the limit while it is read.
            for fields in [Fields([.init("content-length", "100000")]), Fields()] {
                let response = try await client.send(
                    "POST", "/", fields: fields, body: [UInt8](repeating: 1, count: 100_000)
                ).get()
                #expect(response.status == 413)
                #expect(response.body == text("too large"))
            }
            #expect(handled.current == 0)
            // The connection is still usable, and its window was returned.
            for _ in 0..<30 {
                let response = try await client.send("POST", "/", body: [UInt8](repeating: 1, count: 65_536)).get()
                #expect(response.status == 200)
            }
            #expect(handled.current == 30)
        }
    }

    @Test func oversizedHeaderIsAnswered431() async throws {
        try await TestServer.with { _ in
            .now(ok)
        } _: { server in
            let client = try await server.client()
            let many = Fields((0..<120).map { .init("x-\($0)", "1") })
            let large = Fields((0..<5).map { .init("x-\($0)", String(repeating: "a", count: 8000)) })
            for fields in [many, large] {
                #expect(try await client.send("GET", "/", fields: fields).get().status == 431)
            }
            let fitting = Fields((0..<90).map { .init("x-\($0)", "1") })
            #expect(try await client.send("GET", "/", fields: fitting).get().status == 200)
        }
    }

    @Test func asynchronousAnswersArriveAndLateOnesAreReplaced() async throws {
        let loops = Shared<[EventLoop]>([])
        try await TestServer.with { request in
            let isSlow = request.path == "/slow"
            return .later(deadline: isSlow ? .milliseconds(50) : .seconds(60), late: { Response(status: 503) }) {
                await loops.current[0].sleep(for: isSlow ? .milliseconds(200) : .milliseconds(1))
                return .response(ok)
            }
        } _: { server in
            loops.withLock { $0 = [server.loop] }
            let client = try await server.client()
            async let slow = client.send("GET", "/slow")
            async let quick = client.send("GET", "/quick")
            #expect(try await slow.get().status == 503)
            #expect(try await quick.get().status == 200)
        }
    }

    @Test func heldRequestIsCancelledWithItsStreamOrConnection() async throws {
        let waits = Shared<[TestWait]>([])
        let time = TestTime()
        try await TestServer.with(time: time) { _ in
            .later(deadline: .seconds(3600), late: { Response(status: 503) }) {
                let wait = TestWait()
                waits.withLock { $0.append(wait) }
                return .held(Hold(duration: .seconds(3600), wait: wait) { .response(ok) })
            }
        } _: { server in
            let client = try await server.client()
            // The deadline resets the stream.
            async let first = client.send("GET", "/", deadline: .seconds(1))
            await waits.until { !$0.isEmpty }
            time.advance(by: .seconds(1))
            await server.loop.perform {}
            #expect(await first == .failure(.ambiguous("no answer in time")))
            await waits.current[0].cancelled.until { $0 == 1 }
            async let second = client.send("GET", "/")
            await waits.until { $0.count == 2 }
            await waits.current[1].armed.until { $0 == 1 }
            waits.current[1].fire()
            #expect(try await second.get().status == 200)
            #expect(waits.current[1].cancelled.current == 0)
            async let third = client.send("GET", "/")
            await waits.until { $0.count == 3 }
            await client.perform { $0.close() }
            #expect(await third == .failure(.ambiguous("closed")))
            await withUnsafeContinuation { continuation in
                server.loop.post { server.server.value.drain { continuation.resume() } }
            }
            #expect(waits.current[2].cancelled.current == 1)
        }
    }

    @Test func workInFlightIsCapped() async throws {
        var limits = ServerLimits.patient
        limits.inFlight = 3
        let waits = Shared<[TestWait]>([])
        try await TestServer.with(limits: limits) { _ in
            .later(deadline: .seconds(Patience.seconds), late: { Response(status: 503) }) {
                let wait = TestWait()
                waits.withLock { $0.append(wait) }
                return .held(Hold(duration: .seconds(3600), wait: wait) { .response(ok) })
            }
        } _: { server in
            let client = try await server.client()
            await withTaskGroup(of: Result<Response, RequestFailure>.self) { group in
                for _ in 0..<5 { group.addTask { await client.send("GET", "/") } }
                // Two requests are refused as not processed.
                for _ in 0..<2 {
                    let refused = await group.next()
                    #expect(refused == .failure(.notSent("refused")))
                }
                for wait in waits.current { wait.fire() }
                for _ in 0..<3 {
                    let answered = await group.next()
                    #expect((try? answered?.get().status) == 200)
                }
            }
            #expect(waits.current.count == 3)
        }
    }

    @Test func drainFinishesStreamsAndAcceptsNoNewOnes() async throws {
        let work = HeldWork()
        try await TestServer.with { _ in
            work.reply(ok)
        } _: { server in
            let (busy, idle) = (try await server.client(), try await server.client())
            async let begun = busy.send("GET", "/")
            await work.hasBegun()
            let drained = await server.drain()
            await idle.isIn(.closed)
            await busy.isIn(.goingAway)
            #expect(!drained.current)
            guard case .failure(.notSent) = await busy.send("GET", "/") else {
                Issue.record("sent to a server that goes")
                return
            }
            await #expect(throws: ConnectionFailure.self) { _ = try await server.client() }
            work.end()
            #expect(try await begun.get().status == 200)
            await drained.until { $0 }
            #expect(await server.loop.perform { server.server.value.connectionCount } == 0)
        }
    }

    @Test func drainHasATimeout() async throws {
        var limits = ServerLimits.patient
        limits.drain = .milliseconds(100)
        let work = HeldWork()
        try await TestServer.with(limits: limits) { _ in
            work.reply(ok)
        } _: { server in
            let client = try await server.client()
            async let begun = client.send("GET", "/")
            await work.hasBegun()
            await withUnsafeContinuation { continuation in
                server.loop.post { server.server.value.drain { continuation.resume() } }
            }
            guard case .failure(.ambiguous) = await begun else {
                Issue.record("answered")
                return
            }
            work.end()
        }
    }

    /// One request is held before the drain, and one would be held during it.
    @Test func drainAnswersHeldRequests() async throws {
        let waits = Shared<[TestWait]>([])
        let work = HeldWork()
        try await TestServer.with { request in
            .later(deadline: .seconds(3600), late: { Response(status: 503) }) {
                if request.path == "/slow" { await work.run() }
                let wait = TestWait()
                waits.withLock { $0.append(wait) }
                return .held(Hold(duration: .seconds(3600), wait: wait) { .response(ok) })
            }
        } _: { server in
            let client = try await server.client()
            async let held = client.send("GET", "/")
            async let slow = client.send("GET", "/slow")
            await waits.until { !$0.isEmpty }
            await work.hasBegun()
            let drained = await server.drain()
            #expect(try await held.get().status == 200)
            #expect(!drained.current)
            work.end()
            #expect(try await slow.get().status == 200)
            await drained.until { $0 }
            #expect(waits.current.map(\.armed.current) == [1, 0])
            #expect(waits.current.map(\.cancelled.current) == [1, 1])
        }
    }

    @Test func newConnectionsUseTheReplacedCertificate() async throws {
        try await TestServer.with { _ in
            .now(ok)
        } _: { server in
            let old = try await server.client()
            let renewed = try TestCertificates()
            let context = try renewed.serverContext()
            await server.loop.perform { server.server.value.replace(tls: context) }
            #expect(try await old.send("GET", "/").get().status == 200)
            await #expect(throws: ConnectionFailure.self) { _ = try await server.client() }
        }
    }

    @Test(arguments: [204, 304]) func answerWithThisStatusHasNoBody(status: Int) async throws {
        try await TestServer.with { _ in
            .now(Response(status: status, body: Array("no".utf8)))
        } _: { server in
            let client = try await server.client()
            let response = try await client.send("GET", "/").get()
            #expect(response.status == status && response.body.isEmpty)
        }
    }

    @Test func descriptorExhaustionIsSurvived() async {
        await #expect(processExitsWith: .success) {
            try await TestServer.with { _ in
                .now(ok)
            } _: { server in
                let client = try await server.client()
                var limit = rlimit(rlim_cur: 64, rlim_max: 64)
                precondition(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
                // The test takes all descriptors and frees one: enough to connect, but not to
                // accept.
                var taken: [Int32] = []
                while true {
                    let fd = open("/dev/null", O_RDONLY)
                    guard fd >= 0 else { break }
                    taken.append(fd)
                }
                close(taken.removeLast())
                let refused = await blocking { RawPeer(port: server.port).isEnded() }
                precondition(refused, "left to wait")
                // Open connections continue, and later connections are accepted.
                let response = try await client.send("GET", "/").get()
                precondition(response.status == 200)
                for fd in taken { close(fd) }
                _ = try await server.client()
            }
        }
    }
}
