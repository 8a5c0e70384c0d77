import Glibc
import Log
import Relay
import Synchronization
import TestSupport
import Testing
import World

@testable import Storage

/// The lane of the change feed: it waits for no other read, and no other read waits for it.
@Suite(.mayBlock) struct ChangeFeedLaneTests {
    private static let stuck = Statement("SELECT count(*) AS count FROM user")

    @Test(arguments: [Engine.file, .mariadb]) func hangingReadDelaysNoChangeFeedRead(_ engine: Engine) async throws {
        let database = try engine.database(Migration.all)
        try database.open().close()
        var options = StoreOptions()
        options.watches = true
        options.deadline = .seconds(600)
        let gate = try Gate()
        let store = try Store.open(database.url, time: SystemTime(), log: Log(sink: database.sink), options: options) {
            ObservedSession($0) { (steps, session) throws(SessionFailure) in
                if steps.contains(where: { $0.statement === Self.stuck }) { gate.stop() }
                return try session.run(steps)
            }
        }
        defer { store.close() }
        async let read = store.run(Script("stuck", reads: [Self.stuck()]))
        await gate.hasStopped()
        #expect(try await store.newestChange() == 0)
        #expect(try await store.changes(after: 0, limit: 10).isEmpty)
        gate.open()
        #expect(try await read.row(0).integer("count") == 0)
    }
}

/// A gate that stops the thread that reaches it until it is opened.
private final class Gate: Sendable {
    private enum State {
        case nobody
        case awaited(CheckedContinuation<Void, Never>)
        case stopped
    }

    private let state = Mutex(State.nobody)
    private let reading: Int32
    private let writing: Int32

    init() throws {
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        (reading, writing) = (ends[0], ends[1])
    }

    deinit {
        close(reading)
        close(writing)
    }

    func stop() {
        let before = state.withLock { state in
            defer { state = .stopped }
            return state
        }
        if case .awaited(let continuation) = before { continuation.resume() }
        var byte: UInt8 = 0
        while read(reading, &byte, 1) < 0, errno == EINTR {}
    }

    func hasStopped() async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                if case .stopped = state { return true }
                state = .awaited(continuation)
                return false
            }
            if isThere { continuation.resume() }
        }
    }

    func open() { _ = write(writing, "x", 1) }
}
