import EventLoop
import HTTP
import TestSupport
import Testing
import TwoefayClient

/// The pool of `HTTP2Carrier`, with a relay that holds its answers. The relay allows 100 streams on a
/// connection, as its program does.
@Suite("Connection pool", .timeLimit(.minutes(5)), .mayBlock) struct ConnectionPoolTests {
    private static let streams = 100

    private let events: AsyncStream<String>
    private let continuation: AsyncStream<String>.Continuation

    init() { (events, continuation) = AsyncStream.makeStream() }

    /// Waits until an event has come this often. Events of other names are skipped.
    private func until(_ event: String, times: Int = 1) async {
        var left = times
        for await said in events where said == event {
            left -= 1
            if left == 0 { return }
        }
    }

    private func run<Value: Sendable>(
        mostConnections: Int = HTTP2Carrier.usualConnections, clock: TestTime = TestTime(),
        _ body: @escaping @Sendable (HTTP2Carrier, EventLoop) async throws -> Value
    ) async throws -> Value {
        let relay = try FakeRelay()
        return try await relay.run(keeper: { [continuation] in HeldConnections(continuation) }) { _, address in
            let group = try LoopGroup.start(count: 1, time: clock)
            defer { group.stopAndJoin() }
            let carrier = try relay.carrier(on: group.loops[0], to: address, mostConnections: mostConnections)
            let value = try await body(carrier, group.loops[0])
            await carrier.close()
            return value
        }
    }

    private static func ask(_ carrier: HTTP2Carrier, _ path: String) async throws -> Int {
        try await carrier.send(RelayCall("POST", path, timeout: .seconds(3600))).status
    }

    /// Asks held questions. The status of each answer names its connection.
    private static func hold(_ carrier: HTTP2Carrier, _ count: Int) -> [Task<Int, any Error>] {
        (0..<count).map { _ in Task { try await ask(carrier, "/held") } }
    }

    private static func statuses(_ calls: [Task<Int, any Error>]) async throws -> [Int: Int] {
        var counts: [Int: Int] = [:]
        for call in calls { counts[try await call.value, default: 0] += 1 }
        return counts
    }

    @Test func fullConnectionsOpenAnother() async throws {
        let counts = try await run { carrier, _ in
            let held = Self.hold(carrier, Self.streams)
            await self.until("held 1", times: Self.streams)
            let more = Self.hold(carrier, Self.streams)
            await self.until("held 2", times: Self.streams)
            let last = Self.hold(carrier, 1)
            await self.until("held 3")
            // With all streams in use, this call needs a connection, too.
            #expect(try await Self.ask(carrier, "/release") == 200)
            return try await Self.statuses(held + more + last)
        }
        #expect(counts == [201: Self.streams, 202: Self.streams, 203: 1])
    }

    @Test func idleConnectionIsClosedUnlessItIsTheOnlyOne() async throws {
        let clock = TestTime()
        let counts = try await run(clock: clock) { carrier, loop in
            let held = Self.hold(carrier, Self.streams + 1)
            await self.until("held 2")
            #expect(try await Self.ask(carrier, "/release") == 200)
            var counts = try await Self.statuses(held)
            clock.advance(by: .seconds(31))
            await loop.perform {}
            await self.until("ended 2")
            let again = Self.hold(carrier, 1)
            await self.until("held 1")
            #expect(try await Self.ask(carrier, "/release") == 200)
            counts.merge(try await Self.statuses(again)) { $0 + $1 }
            return counts
        }
        #expect(counts == [201: Self.streams + 1, 202: 1])
    }

    /// The relay ends connections with many resets. The calls under way must not pay for that.
    @Test func connectionWithManyResetsIsReplaced() async throws {
        let counts = try await run { carrier, _ in
            let kept = Self.hold(carrier, 1)
            await self.until("held 1")
            for _ in 0..<100 {
                let left = Self.hold(carrier, 1)
                await self.until("held 1")
                left[0].cancel()
                await self.until("closed 1")
            }
            let next = Self.hold(carrier, 1)
            await self.until("held 2")
            #expect(try await Self.ask(carrier, "/release") == 200)
            return try await Self.statuses(kept + next)
        }
        #expect(counts == [201: 1, 202: 1])
    }

    @Test func callsBeyondTheLimitOfConnectionsWait() async throws {
        let counts = try await run(mostConnections: 1) { carrier, _ in
            let held = Self.hold(carrier, Self.streams)
            await self.until("held 1", times: Self.streams)
            // The release itself waits for a stream, which the cancellation frees.
            let release = Task { try await Self.ask(carrier, "/release") }
            held[0].cancel()
            #expect(try await release.value == 200)
            return try await Self.statuses(Array(held.dropFirst()))
        }
        #expect(counts == [201: Self.streams - 1])
    }
}
