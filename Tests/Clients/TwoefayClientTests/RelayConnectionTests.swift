import EventLoop
import HTTP
import Testing
import TestSupport
import TwoefayClient
import World

/// Calls whose connection accepts no more requests or fails.
@Suite("Connections of HTTP2Carrier", .timeLimit(.minutes(5)), .mayBlock) struct RelayConnectionTests {
    private let events: AsyncStream<String>
    private let continuation: AsyncStream<String>.Continuation

    init() { (events, continuation) = AsyncStream.makeStream() }

    private func until(_ event: String) async {
        for await said in events where said == event { return }
    }

    private func run<Value: Sendable>(
        _ body: @escaping @Sendable (FakeRelay, EventLoop, WebAddress) async throws -> Value
    ) async throws -> Value {
        let relay = try FakeRelay()
        return try await relay.run(keeper: { [continuation] in HeldConnections(continuation) }) { loop, address in
            try await body(relay, loop, address)
        }
    }

    private static func ask(
        _ carrier: HTTP2Carrier, _ path: String, timeout: Duration = .seconds(3600)
    ) async -> Result<Int, CallFault> {
        do throws(CallFault) {
            return .success(try await carrier.send(RelayCall("POST", path, timeout: timeout)).status)
        } catch {
            return .failure(error)
        }
    }

    @Test func goAwayOpensANewConnection() async throws {
        let (held, released) = try await run { relay, loop, address in
            let carrier = try relay.carrier(on: loop, to: address)
            let held = Task { await Self.ask(carrier, "/held") }
            await self.until("held 1")
            #expect(await Self.ask(carrier, "/leave") == .success(200))
            // This call uses a new connection while the first call is still open.
            let released = await Self.ask(carrier, "/release")
            let answers = (await held.value, released)
            await carrier.close()
            return answers
        }
        #expect(held == .success(201) && released == .success(200))
    }

    /// Stream ids start again on each connection. A cancellation must not affect the stream with
    /// the same id on the other.
    @Test func cancellationAffectsOnlyItsConnection() async throws {
        let (givenUp, kept) = try await run { relay, loop, address in
            let carrier = try relay.carrier(on: loop, to: address)
            let givenUp = Task { await Self.ask(carrier, "/held") }
            await self.until("held 1")
            #expect(await Self.ask(carrier, "/leave") == .success(200))
            let kept = Task { await Self.ask(carrier, "/held") }
            await self.until("held 2")
            givenUp.cancel()
            await self.until("closed 1")
            #expect(await Self.ask(carrier, "/release") == .success(200))
            let answers = (await givenUp.value, await kept.value)
            await carrier.close()
            return answers
        }
        #expect(givenUp == .failure(.cancelled))
        #expect(kept == .success(202))
    }

    @Test func closeEndsAllConnections() async throws {
        let (earlier, later) = try await run { relay, loop, address in
            let carrier = try relay.carrier(on: loop, to: address)
            let earlier = Task { await Self.ask(carrier, "/held") }
            await self.until("held 1")
            #expect(await Self.ask(carrier, "/leave") == .success(200))
            let later = Task { await Self.ask(carrier, "/held") }
            await self.until("held 2")
            await carrier.close()
            return (await earlier.value, await later.value)
        }
        for ended in [earlier, later] {
            guard case .failure(.unanswered) = ended else {
                Issue.record("\(ended)")
                continue
            }
        }
    }

    // MARK: Silence

    /// Runs `body` on a loop whose clock the test moves.
    private static func onOwnClock<Value: Sendable>(
        _ body: (EventLoop, TestTime) async throws -> Value
    ) async throws -> Value {
        let time = TestTime()
        let group = try LoopGroup.start(count: 1, time: time)
        defer { group.stopAndJoin() }
        return try await body(group.loops[0], time)
    }

    /// The silent connection is replaced for calls with either timeout. Waiting calls may be
    /// repeated on the new connection.
    @Test(arguments: [Duration.seconds(3600), .seconds(5)]) func silentConnectionIsReplaced(
        timeout: Duration
    ) async throws {
        let (silent, next) = try await run { relay, _, address in
            try await Self.onOwnClock { loop, time in
                let carrier = try relay.carrier(on: loop, to: address)
                let silent = Task { await Self.ask(carrier, "/silence", timeout: timeout) }
                await self.until("silent 1")
                for _ in 0..<60 {
                    time.advance(by: .seconds(1))
                    await loop.perform {}
                }
                // The call should have ended. The cancellation ends it if it has not.
                silent.cancel()
                let next = Task { await Self.ask(carrier, "/release", timeout: timeout) }
                let answers = (await silent.value, await next.value)
                await carrier.close()
                return answers
            }
        }
        guard case .failure(.unanswered) = silent else {
            Issue.record("\(silent)")
            return
        }
        #expect(next == .success(200))
    }

    @Test func activeConnectionIsKept() async throws {
        let (held, statuses) = try await run { relay, _, address in
            try await Self.onOwnClock { loop, time in
                let carrier = try relay.carrier(on: loop, to: address)
                let held = Task { await Self.ask(carrier, "/held") }
                await self.until("held 1")
                var statuses: [Result<Int, CallFault>] = []
                for _ in 0..<24 {
                    time.advance(by: .seconds(5))
                    // This answer shows that all earlier requests were answered, too.
                    statuses.append(await Self.ask(carrier, "/"))
                }
                statuses.append(await Self.ask(carrier, "/release"))
                let answers = (await held.value, statuses)
                await carrier.close()
                return answers
            }
        }
        #expect(held == .success(201))
        #expect(statuses.allSatisfy { $0 == .success(200) })
    }
}
