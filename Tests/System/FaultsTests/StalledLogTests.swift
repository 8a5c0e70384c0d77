import EventLoop
import Glibc
import HTTP2
import Synchronization
import TestSupport
import Testing

/// A stalled reader of the log: lines are dropped and counted, and nothing else suffers.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct StalledLogTests {
    @Test func stalledLogBlocksNoRequestAndCountsDroppedLines() async throws {
        let stand = try await Stand.start { try $0.set("log.queue", to: "256") }
        let answered = try await stand.ask(as: stand.fixture.shop, expecting: 404)
        #expect(answered == Stand.requests)
        let lines = try await stand.end()
        let seen = lines.count { ObservedSink.isOf("request", $0) }
        #expect(seen > 0)
        #expect(Stand.sum(lines, "event=log.dropped kind=info") == Stand.requests - seen)
        #expect(lines.contains { $0.hasSuffix("event=daemon.stopped") })
    }

    @Test func anonymousRefusalsAreSampled() async throws {
        let stand = try await Stand.start()
        let answered = try await stand.ask(as: stand.fixture.anyone, expecting: 401)
        #expect(answered == Stand.requests)
        let lines = try await stand.end()
        let seen = lines.count { ObservedSink.isOf("request", $0) }
        #expect(!lines.contains { ObservedSink.isOf("log.dropped", $0) })
        #expect(Stand.sum(lines, "event=request.sampled status=401 kind=anonymous") == Stand.requests - seen)
    }

    /// The log is never read again, and the end of the process does not wait for that.
    @Test func shutdownDoesNotWaitForTheLogReader() async throws {
        let stand = try await Stand.start { try $0.set("log.queue", to: "64") }
        _ = try await stand.ask(as: stand.fixture.shop, expecting: 404)
        #expect(await stand.stop().status == 0)
    }

    /// A relay whose log is read only when the test reads it.
    private final class Stand: Sendable {
        static let requests = 3000

        let fixture: Fixture
        private let child: Child
        private let pipe: Int32

        static func start(change: (inout String) throws -> Void = { _ in }) async throws -> Stand {
            let fixture = try await Fixture.start(change: change)
            await fixture.relay.stop()
            let path = fixture.relay.directory("log.fifo")
            try #require(mkfifo(path, 0o600) == 0)
            let pipe = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
            try #require(pipe >= 0)
            let child = try Child(
                "sh",
                [
                    "-c", #"exec "$0" --config "$1" 2> "$2""#, try BuiltProgram.twoefayd.path, fixture.relay.settings,
                    path,
                ])
            let stand = Stand(fixture, child, pipe)
            _ = await stand.read { $0.contains("event=daemon.started") }
            return stand
        }

        private init(_ fixture: Fixture, _ child: Child, _ pipe: Int32) {
            self.fixture = fixture
            self.child = child
            self.pipe = pipe
        }

        deinit {
            child.signal(SIGKILL)
            close(pipe)
        }

        /// Returns the number of answers with the expected status.
        func ask(as client: ReconnectingClient, expecting status: Int) async throws -> Int {
            try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<20 {
                    let line = try await client.line()
                    group.addTask {
                        var answered = 0
                        for _ in 0..<(Self.requests / 20) {
                            let reply = try await line.send("GET", "/user/nobody").get()
                            if reply.status == status { answered += 1 }
                        }
                        return answered
                    }
                }
                return try await group.reduce(0, +)
            }
        }

        func stop() async -> Child.Ended {
            child.signal(SIGTERM)
            return await child.ended()
        }

        /// Reads everything from now on, until the relay has ended.
        func end() async throws -> [String] {
            async let reading = read { _ in false }
            child.signal(SIGTERM)
            let text = await reading
            #expect(await child.ended().status == 0)
            return text.split(separator: "\n").map { String($0) }
        }

        /// Reads until `isEnough`, or until the end of the log.
        private func read(isEnough: @Sendable (String) -> Bool) async -> String {
            await blocking {
                var all: [UInt8] = []
                var chunk = [UInt8](repeating: 0, count: 4096)
                while true {
                    var ready = pollfd(fd: pipe, events: Int16(POLLIN), revents: 0)
                    guard poll(&ready, 1, -1) > 0 else { continue }
                    let count = Glibc.read(pipe, &chunk, chunk.count)
                    guard count > 0 else { break }
                    all += chunk[..<count]
                    if isEnough(String(decoding: all, as: UTF8.self)) { break }
                }
                return String(decoding: all, as: UTF8.self)
            }
        }

        /// Returns the sum of the counts in all lines that hold `part`.
        static func sum(_ lines: [String], _ part: String) -> Int {
            lines.filter { $0.contains(part) }
                .compactMap { $0.split(separator: " ").last?.split(separator: "=").last.flatMap { Int($0) } }
                .reduce(0, +)
        }
    }
}
