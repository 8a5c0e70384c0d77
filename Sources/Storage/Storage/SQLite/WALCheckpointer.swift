import CSQLite
import EventLoop
import Synchronization

/// Brings the write-ahead log of one SQLite file into the file, on a thread and a connection of its own: `CheckpointPolicy`
/// says when. What fails is tried again after some more commits; if the disk is full, the commits themselves say so.
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

    /// A connection has committed.
    ///
    /// - Parameter bringIn: does it on that connection.
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

    /// To be called before the connection that writes is closed: SQLite brings all of the log in with the last one.
    func close() {
        worker.post { self.session.withLock { $0.close() } }
        guard let thread = worker as? WorkerThread else { return }
        thread.stop()
        thread.join(within: .seconds(2))
    }
}

extension SQLiteSession {
    /// Brings into the file what no reader still needs from the log, and waits for nobody. Returns how many pages of the
    /// log are in the file then.
    func checkpoint() -> Int? { isOpen ? checkpointed(database) : nil }

    /// Has `log` told of each commit, in place of what SQLite does by itself.
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
