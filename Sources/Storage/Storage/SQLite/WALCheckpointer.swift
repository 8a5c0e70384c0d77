import CSQLite
import EventLoop
import Synchronization

/// Copies the write-ahead log of one SQLite file into the file, on its own thread and connection.
///
/// Purpose: without it, SQLite checkpoints within a commit, and all requests of the lane wait for
/// it. `CheckpointPolicy` decides when a checkpoint runs and on which thread.
///
/// Invariants: a checkpoint is passive, so it waits for no reader and no writer. Only `empty` waits.
/// At most one checkpoint at a time runs on the checkpointer's thread. A checkpoint never changes
/// what a transaction reads; it only moves pages.
///
/// Failures:
/// - A checkpoint fails. The next commits trigger another attempt. If the disk is full, the commits
///   themselves report it.
/// - A long read transaction keeps pages in the log. They are copied after it ends.
/// - The writing connection closes first. Then the checkpointer's connection would do the final
///   checkpoint of the whole log, so `close()` closes this connection first.
///
/// `WALCheckpointerTests.swift` and `CheckpointPolicyTests.swift` test it.
final class WALCheckpointer: Sendable {
    private let policy: Mutex<CheckpointPolicy>
    private let session: Mutex<SQLiteSession>
    private let worker: any Worker

    init(
        _ session: sending SQLiteSession, worker: any Worker,
        limits: CheckpointPolicy.Limits = CheckpointPolicy.Limits()
    ) {
        self.session = Mutex(session)
        self.worker = worker
        policy = Mutex(CheckpointPolicy(limits))
    }

    deinit { (worker as? WorkerThread)?.stop() }

    /// Records a commit of a connection, and starts a checkpoint if one is due.
    ///
    /// - Parameters:
    ///   - pages: the number of pages in the log.
    ///   - bringIn: checkpoints on the connection that committed.
    func committed(_ pages: Int, bringIn: () -> Int?) {
        switch policy.withLock({ $0.committed(pages) }) {
        case nil: break
        case .here: ended(.here, bringIn())
        case .beside: worker.post { self.ended(.beside, self.session.withLock { $0.checkpoint() }) }
        }
    }

    private func ended(_ place: CheckpointPolicy.Place, _ checkpointed: Int?) {
        policy.withLock { $0.ended(place, checkpointed) }
    }

    /// Moves the whole log into the file and empties it, so that values which were overwritten are
    /// in neither. `done` is called on the checkpointer's thread, with false if somebody still reads
    /// an older state, or after a failure. Writers wait until it has ended, for a second at most.
    func empty(_ done: @escaping @Sendable (Bool) -> Void) {
        worker.post {
            // Most of the work needs no lock.
            done(self.session.withLock { $0.checkpoint() != nil && $0.emptyLog() })
        }
    }

    /// Closes the connection of the checkpointer. It must be called before the writing connection
    /// closes, because SQLite checkpoints the whole log when the last connection closes.
    func close() {
        worker.post { self.session.withLock { $0.close() } }
        guard let thread = worker as? WorkerThread else { return }
        thread.stop()
        thread.join(within: .seconds(2))
    }
}

extension SQLiteSession {
    /// Copies all pages that no reader needs any more from the log into the file, without waiting
    /// for others. It returns the number of pages of the log that are in the file; nil after a
    /// failure.
    func checkpoint() -> Int? { isOpen ? checkpointed(database) : nil }

    fileprivate func emptyLog() -> Bool {
        isOpen && sqlite3_wal_checkpoint_v2(database, nil, SQLITE_CHECKPOINT_TRUNCATE, nil, nil) == SQLITE_OK
    }

    /// Calls `log` after each commit, instead of SQLite's automatic checkpoint.
    func tell(_ log: WALCheckpointer) {
        sqlite3_wal_hook(
            database,
            { log, database, _, pages in
                guard let log, let database else { return SQLITE_OK }
                Unmanaged<WALCheckpointer>.fromOpaque(log).takeUnretainedValue().committed(Int(pages)) {
                    checkpointed(database)
                }
                return SQLITE_OK
            }, Unmanaged.passUnretained(log).toOpaque())
    }
}

private func checkpointed(_ database: OpaquePointer) -> Int? {
    var broughtIn: Int32 = 0
    let status = sqlite3_wal_checkpoint_v2(database, nil, SQLITE_CHECKPOINT_PASSIVE, nil, &broughtIn)
    return status == SQLITE_OK && broughtIn >= 0 ? Int(broughtIn) : nil
}
