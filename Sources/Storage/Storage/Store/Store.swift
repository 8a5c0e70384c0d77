import EventLoop
import Log
import Relay
import Synchronization
import World

/// The store as the verbs see it: it runs scripts.
///
/// It has a lane for scripts that write and a lane for scripts that only read. Each lane has its
/// own connection and worker. A relay has a third lane, on which `ChangeFeed` looks for changes by
/// others. A database in memory has one connection and therefore one lane.
public final class Store: Sendable {
    /// The version of the tables when the store was opened. A later migration keeps the tables
    /// usable by programs that know this version.
    public let schemaVersion: Int64
    /// Whether no statement of this program needs newer tables.
    private let hasAllTables: Bool
    /// The hosts with their ports, or the socket, that the store may connect to; empty if the store
    /// is a file.
    public let hosts: [String]
    /// The times of the operations, without the look-outs of the change feed.
    public let times = StoreTimes()
    private let writes: Lane
    private let reads: Lane
    private let watching: Lane
    private let logFile: WALCheckpointer?
    /// The path of a SQLite file; nil for other stores.
    private let path: String?
    private let keys: RowKeys
    private let author: AuditAuthor
    private let onClose: (@Sendable (AuditHead) -> Void)?
    private let limit: Duration
    /// The readers of loops; nil if all scripts run in the lanes.
    private let readers = Mutex<LoopReaders?>(nil)
    let time: any TimeSource

    init(
        writes: Lane, reads: Lane?, watching: Lane?, logFile: WALCheckpointer?, at url: StorageURL,
        schemaVersion: Int64,
        keys: RowKeys, author: AuditAuthor, onClose: (@Sendable (AuditHead) -> Void)?, limit: Duration,
        time: any TimeSource
    ) {
        self.author = author
        self.onClose = onClose
        self.logFile = logFile
        self.keys = keys
        hosts = url.places
        path = if case .sqlite(let path) = url { path } else { nil }
        self.writes = writes
        self.reads = reads ?? writes
        self.watching = watching ?? self.reads
        self.schemaVersion = schemaVersion
        hasAllTables = schemaVersion >= SchemaState.known
        self.limit = limit
        self.time = time
    }

    var rowAuthenticator: RowAuthenticator? { keys.current }

    /// The chain of the audit that this store writes; nil if it has none.
    var auditChain: AuditChain? { writes.chain }

    /// Signs and checks rows with these keys from now on.
    public func use(_ authenticator: RowAuthenticator) { keys.use(authenticator) }

    /// The keys for personal values, and whether this store seals them.
    var personalSealer: PersonalSealer? { keys.personal }

    /// Seals and opens personal values with these keys from now on.
    public func use(_ personal: PersonalSealer) { keys.use(personal) }

    /// Runs a script and returns one `Rows` for each of its reads. A caller on a loop continues on
    /// that loop.
    public func run(_ script: Script) async throws(StoreFailure) -> [Rows] {
        let started = time.instant()
        defer { times.observe(script, time.instant() - started) }
        return try await run(script, in: script.isReadOnly ? reads : writes, orOnLoop: true)
    }

    /// Runs a script that only reads in its lane, to find out whether the lane works.
    func probe(_ script: Script) async throws(StoreFailure) { _ = try await run(script, in: reads) }

    /// Runs a script that only reads on the lane of the change feed, independently of all other
    /// scripts. A node of a cluster does not find changes that it has not applied yet.
    func watch(_ script: Script) async throws(StoreFailure) -> [Rows] {
        precondition(script.rows.isEmpty, "a check and what it is for see one state only in a transaction")
        return try await run(script, in: watching)
    }

    /// - Parameter orOnLoop: whether the script may run on the loop, if it only reads.
    private func run(
        _ script: Script, in lane: Lane, orOnLoop: Bool = false
    ) async throws(StoreFailure) -> [Rows] {
        let loop = EventLoop.current
        // A short form needs the newest tables.
        let (fitting, missing) = hasAllTables ? (script, []) : try script.guarded.fitting(schemaVersion)
        let script = try fitting.resolved(by: keys.personal)
        if orOnLoop, lane === reads, let loop, let readers = readers.withLock({ $0 }),
            let rows = readers.read(script, on: loop, keys.current)
        {
            return opened(rows, missing)
        }
        let cause = AuditCause(
            actor: Actor.current?.text ?? author.actor, request: LoggedRequest.id,
            reason: Actor.current?.reason ?? author.reason)
        let answer = await withUnsafeContinuation { continuation in
            let submission = Submission(script, of: .current, by: cause, deadline: time.instant() + limit, loop: loop) {
                continuation.resume(returning: $0)
            }
            submission.giveUp(after: limit)
            lane.submit(submission)
        }
        return opened(try answer.get(), missing)
    }

    /// Returns the results of a script as its caller gets them.
    ///
    /// - Parameter missing: the indices of reads that were left out.
    private func opened(_ rows: [Rows], _ missing: [Int]) -> [Rows] {
        let personal = keys.personal
        var rows = rows.map { $0.opened(by: personal) }
        for index in missing { rows.insert(Rows(changes: 0), at: index) }
        return rows
    }

    /// Lets scripts that only read, and read little, run on these loops from now on. It changes nothing
    /// if the store is not a SQLite file.
    public func read(on loops: [EventLoop]) throws(StoreFailure) { try read(on: loops, within: LoopReaders.limit) }

    /// - Parameter limit: the time after which a script is left to its lane.
    func read(on loops: [EventLoop], within limit: Duration) throws(StoreFailure) {
        guard let path else { return }
        do {
            let made = try LoopReaders(loops, at: path, time: time, limit: limit)
            readers.withLock { $0 = made }
        } catch {
            throw .unavailable("\(path): \(error.message)")
        }
    }

    /// The number of scripts that were read on loops.
    var loopReads: Int { readers.withLock { $0 }?.count ?? 0 }

    /// Empties SQLite's write-ahead log, so that the files have no value any more that was
    /// overwritten. It does nothing for other stores, or without a loop.
    func emptyLog() async throws(StoreFailure) {
        guard let logFile, let loop = EventLoop.current else { return }
        let isEmpty = await withUnsafeContinuation { continuation in
            logFile.empty { isEmpty in loop.post { continuation.resume(returning: isEmpty) } }
        }
        guard isEmpty else { throw .unavailable("the write-ahead log is in use") }
    }

    /// Runs a script for a program without a loop. The thread waits, on a temporary loop.
    public func runBlocking(_ script: Script) throws(StoreFailure) -> [Rows] {
        guard let rows = try runBlocking([script]).first else { throw .internal("a loop ended before its work") }
        return rows
    }

    /// Runs several scripts at the same time. After all have run, it throws the first failure.
    public func runBlocking(_ scripts: [Script]) throws(StoreFailure) -> [[Rows]] {
        var all: [[Rows]] = []
        for answer in try answersBlocking(scripts) { all.append(try answer.get()) }
        return all
    }

    /// Runs several scripts at the same time, and returns the result of each.
    func answersBlocking(_ scripts: [Script]) throws(StoreFailure) -> [ScriptResult] {
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
        var all: [ScriptResult] = []
        for index in scripts.indices {
            guard let answer = kept.withLock({ $0[index] }) else { throw .internal("a loop ended before its work") }
            all.append(answer)
        }
        return all
    }

    private var lanes: [Lane] {
        (reads === writes ? [writes] : [writes, reads]) + (watching === reads ? [] : [watching])
    }

    /// The number of the store's connections to `host`, one of `hosts`, as far as the lanes know.
    public func connections(to host: String) -> Int { lanes.count { $0.host == host } }

    /// The number of transactions that ran again because of a conflict.
    public var conflicts: UInt64 { lanes.reduce(0) { $0 + $1.conflicts } }

    /// The message of the current fault; nil if the store works.
    var fault: String? { writes.fault ?? reads.fault }

    /// Answers all waiting scripts with a failure and lets running transactions end. The lane that
    /// writes closes last: its connection does SQLite's final checkpoint.
    public func close() {
        readers.withLock { $0 }?.close()
        if watching !== reads { watching.close() }
        if reads !== writes { reads.close() }
        logFile?.close()
        writes.close()
        if let onClose, let auditHead { onClose(auditHead) }
    }
}
