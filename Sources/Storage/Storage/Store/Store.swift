import EventLoop
import Log
import Relay
import Synchronization
import World

/// The store as the verbs see it: it runs scripts.
///
/// There are two lanes, one for scripts that write and one for scripts that only read, each with its own connection and
/// worker; a relay has a third, with which it looks for what others have changed. A database in memory has one
/// connection and so one lane.
public final class Store: Sendable {
    /// The version of the tables that it found or made. Who migrates them later does so for programs that know it, too.
    public let schemaVersion: Int64
    /// Where it may be connected: hosts with their ports, or a socket; none where the store is a file.
    public let hosts: [String]
    private let writes: Lane
    private let reads: Lane
    private let watching: Lane
    private let logFile: WALCheckpointer?
    private let keys: RowKeys
    private let limit: Duration
    private let time: any TimeSource

    init(
        writes: Lane, reads: Lane?, watching: Lane?, logFile: WALCheckpointer?, hosts: [String], schemaVersion: Int64,
        keys: RowKeys, limit: Duration, time: any TimeSource
    ) {
        self.logFile = logFile
        self.keys = keys
        self.hosts = hosts
        self.writes = writes
        self.reads = reads ?? writes
        self.watching = watching ?? self.reads
        self.schemaVersion = schemaVersion
        self.limit = limit
        self.time = time
    }

    var rowAuthenticator: RowAuthenticator? { keys.current }

    /// Rows are signed and checked with these keys from now on.
    public func use(_ authenticator: RowAuthenticator) { keys.use(authenticator) }

    /// Runs a script and gives back one `Rows` for each of its reads. Called on a loop, it goes on there.
    public func run(_ script: Script) async throws(StoreFailure) -> [Rows] {
        try await run(script, in: script.isReadOnly ? reads : writes)
    }

    /// The same of a script that only reads, beside all others: it waits for none of them, and none for it. What a node of
    /// a cluster has not applied yet it does not find.
    func watch(_ script: Script) async throws(StoreFailure) -> [Rows] {
        precondition(script.rows.isEmpty, "a check and what it is for see one state only in a transaction")
        return try await run(script, in: watching)
    }

    private func run(_ script: Script, in lane: Lane) async throws(StoreFailure) -> [Rows] {
        let loop = EventLoop.current
        let answer = await withUnsafeContinuation { continuation in
            let submission = Submission(script, of: .current, deadline: time.instant() + limit, loop: loop) {
                continuation.resume(returning: $0)
            }
            submission.giveUp(after: limit)
            lane.submit(submission)
        }
        return try answer.get()
    }

    /// The same for a program that has no loop: the thread waits, on a loop of its own.
    public func runBlocking(_ script: Script) throws(StoreFailure) -> [Rows] {
        guard let rows = try runBlocking([script]).first else { throw .internal("a loop ended before its work") }
        return rows
    }

    /// Several at the same time. All of them are run; then the first failure is thrown.
    public func runBlocking(_ scripts: [Script]) throws(StoreFailure) -> [[Rows]] {
        guard !scripts.isEmpty else { return [] }
        let loop: EventLoop
        do {
            loop = try EventLoop(name: "waiting", time: time)
        } catch {
            throw .unavailable("\(error)")
        }
        let kept = Mutex<[Int: ScriptResult]>([:])
        loop.post {
            for (index, script) in scripts.enumerated() {
                loop.spawn {
                    let answer: ScriptResult
                    do throws(StoreFailure) {
                        answer = .success(try await self.run(script))
                    } catch {
                        answer = .failure(error)
                    }
                    let count = kept.withLock { kept in
                        kept[index] = answer
                        return kept.count
                    }
                    if count == scripts.count { loop.stop() }
                }
            }
        }
        loop.run()
        var all: [[Rows]] = []
        for index in scripts.indices {
            guard let answer = kept.withLock({ $0[index] }) else { throw .internal("a loop ended before its work") }
            all.append(try answer.get())
        }
        return all
    }

    private var lanes: [Lane] {
        (reads === writes ? [writes] : [writes, reads]) + (watching === reads ? [] : [watching])
    }

    /// How many of its connections are to one of `hosts`, as far as is known.
    public func connections(to host: String) -> Int { lanes.count { $0.host == host } }

    /// Transactions that were run again because somebody else was in the way.
    public var conflicts: UInt64 { lanes.reduce(0) { $0 + $1.conflicts } }

    /// Why the store is not well, if it is not.
    var fault: String? { writes.fault ?? reads.fault }

    /// What waits is answered with a failure, what runs is finished. The lane that writes is the last: with it SQLite
    /// brings its log into the file.
    public func close() {
        if watching !== reads { watching.close() }
        if reads !== writes { reads.close() }
        logFile?.close()
        writes.close()
    }
}
