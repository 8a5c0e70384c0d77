import EventLoop
import Log
import Relay
import Synchronization
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
            let submission = Submission(script, deadline: time.instant() + limit, loop: loop) {
                continuation.resume(returning: $0)
            }
            submission.giveUp(after: limit)
            (script.writes.isEmpty ? reads : writes).submit(submission)
        }
        return try answer.get()
    }

    /// The same for a program that has no loop: the thread waits, on a loop of its own.
    public func runBlocking(_ script: Script) throws(StoreFailure) -> [Rows] {
        let loop: EventLoop
        do {
            loop = try EventLoop(name: "waiting", time: time)
        } catch {
            throw .unavailable("\(error)")
        }
        let kept = Mutex<Answer?>(nil)
        loop.post {
            loop.spawn {
                let answer: Answer
                do throws(StoreFailure) {
                    answer = .success(try await self.run(script))
                } catch {
                    answer = .failure(error)
                }
                kept.withLock { $0 = answer }
                loop.stop()
            }
        }
        loop.run()
        guard let answer = kept.withLock({ $0 }) else { throw .internal("a loop ended before its work") }
        return try answer.get()
    }

    /// Why the store is not well, if it is not.
    var trouble: String? { writes.trouble ?? reads.trouble }

    /// What waits is answered with a failure, what runs is finished. The lane that writes is the last: with it SQLite
    /// brings its log into the file.
    public func close() {
        if reads !== writes { reads.close() }
        writes.close()
    }
}
