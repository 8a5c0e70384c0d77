import EventLoop
import Log
import Relay
import World

/// The store as the verbs see it: it runs scripts.
///
/// There are two lanes, one for scripts that write and one for scripts that only read, each with its own connection and
/// worker. A database in memory has one connection and so one lane.
public final class Store: Sendable {
    /// The version of the tables that it found or made.
    public let schemaVersion: Int64
    private let writes: Lane
    private let reads: Lane
    private let limit: Duration
    private let time: any TimeSource

    init(writes: Lane, reads: Lane?, schemaVersion: Int64, limit: Duration, time: any TimeSource) {
        self.writes = writes
        self.reads = reads ?? writes
        self.schemaVersion = schemaVersion
        self.limit = limit
        self.time = time
    }

    /// Runs a script and gives back one `Rows` for each of its reads. Called on a loop, it goes on there.
    public func run(_ script: Script) async throws(StoreFailure) -> [Rows] {
        let loop = EventLoop.current
        let answer = await withUnsafeContinuation { continuation in
            let submission = submission(script, loop: loop) { continuation.resume(returning: $0) }
            submission.giveUp(after: limit)
            lane(of: script).submit(submission)
        }
        return try answer.get()
    }

    /// The same for a program that has no loop: the thread waits.
    public func runBlocking(_ script: Script) throws(StoreFailure) -> [Rows] {
        precondition(EventLoop.current == nil, "a loop must not wait for the store")
        let answer = Awaited<Answer>()
        lane(of: script).submit(submission(script, loop: nil) { answer.set($0) })
        return try answer.wait().get()
    }

    /// Why the store is not well, for whoever asks after the relay's health.
    public var trouble: String? { writes.trouble ?? reads.trouble }

    /// What waits is answered with a failure, what runs is finished.
    public func close() {
        writes.close()
        if reads !== writes { reads.close() }
    }

    private func lane(of script: Script) -> Lane { script.writes.isEmpty ? reads : writes }

    private func submission(
        _ script: Script, loop: EventLoop?, receive: @escaping @Sendable (Answer) -> Void
    ) -> Submission {
        Submission(script, deadline: time.instant() + limit, loop: loop, receive: receive)
    }
}
