import Domain
import Relay
import World

/// The syncs of the sources of users.
///
/// Invariant: every write of a sync is conditional on its own run being the newest one
/// (`isNewest`). So a sync that was halted, and continues after a later one has begun, writes no
/// outdated values. One relay at a time syncs a source by its interval: it holds the lease of the
/// task. An operator's sync needs no lease.
public enum DirectoryRuns {
    /// The condition that this run is the newest one of its source. It names `:source` and `:run`.
    static let isNewest = "EXISTS (SELECT 1 FROM directory_sync s WHERE s.name = :source AND s.run = :run)"

    /// The number of changes of a sync.
    public struct Counts: Sendable, Equatable {
        public var users = 0
        public var added = 0
        public var changed = 0
        public var disabled = 0
        public var conflicts = 0

        public init() {}
    }

    /// The results of the last syncs of a source.
    public struct Last: Sendable, Equatable {
        public let startedAt: Timestamp
        /// The end of the newest sync; nil if it runs, or if its process has died.
        public let endedAt: Timestamp?
        /// The reason why the newest sync failed; nil if it did not.
        public let error: String?
        public let succeededAt: Timestamp?
        /// The counts of the last sync that did not fail.
        public let counts: Counts
    }

    /// The beginning of a sync by a relay, if it is due.
    public struct Turn: Sendable {
        /// Whether this relay may sync now.
        public let isOurs: Bool
        public let last: Last?
    }
}

// MARK: Beginning

extension DirectoryRuns {
    /// Begins a sync on behalf of an operator. Syncs that still run change nothing more.
    public static func begin(_ source: String, _ run: OperationID, at now: Timestamp) -> Query<Void> {
        let script = Script(
            "directory sync",
            writes: [
                insertRun(source: .text(source), run: .id(run), now: .timestamp(now)),
                startRun(source: .text(source), run: .id(run), now: .timestamp(now)),
            ])
        return Query(script: script) { _ in () }
    }

    private static let newColumns = "name, run, started_at, users, added, changed, disabled, conflicts"

    private static let insertRun = Statement(
        """
        INSERT INTO directory_sync (\(newColumns)) VALUES (:source, :run, :now, 0, 0, 0, 0, 0)
        /*M! ON DUPLICATE KEY UPDATE name = directory_sync.name */ /*S! ON CONFLICT DO NOTHING */
        """)

    private static let startRun = Statement(
        "UPDATE directory_sync SET run = :run, started_at = :now, ended_at = NULL WHERE name = :source")

    /// Begins a sync by a relay if none has begun since `before`, and if no other live relay holds
    /// the lease. If it is not due, the relay holds no lease afterwards, so that whichever relay
    /// asks first has the next turn.
    public static func beginIfDue(
        _ source: String, _ run: OperationID, by relay: RelayID, before: Timestamp, at now: Timestamp
    ) -> Query<Turn> {
        let task = SQLValue.text("directory \(source)")
        let script = Script(
            "directory turn",
            writes: [
                insertTask(task: task), leaseTask(relay: .id(relay), task: task),
                insertDueRun(source: .text(source), run: .id(run), now: .timestamp(now), task: task, relay: .id(relay)),
                startDueRun(
                    source: .text(source), run: .id(run), before: .timestamp(before), now: .timestamp(now), task: task,
                    relay: .id(relay)),
                releaseUnused(task: task, relay: .id(relay), source: .text(source), run: .id(run)),
            ], reads: [lastByName(source: .text(source))])
        return Query(script: script) { rows throws(StoreFailure) in
            guard let row = rows[0].first else { return Turn(isOurs: false, last: nil) }
            return Turn(isOurs: try isRun(run, in: rows[0]), last: try last(row))
        }
    }

    private static let insertTask = Statement(
        """
        INSERT INTO task_lease (name, holder) VALUES (:task, NULL)
        /*M! ON DUPLICATE KEY UPDATE name = task_lease.name */ /*S! ON CONFLICT DO NOTHING */
        """)

    private static let leaseTask = Statement(
        """
        UPDATE task_lease SET holder = :relay WHERE name = :task AND
        (holder IS NULL OR holder = :relay OR NOT EXISTS (SELECT 1 FROM relay r WHERE r.id = task_lease.holder))
        """)

    private static let holdsTask = "EXISTS (SELECT 1 FROM task_lease t WHERE t.name = :task AND t.holder = :relay)"

    /// Inserts the first run of a source.
    private static let insertDueRun = Statement(
        """
        INSERT INTO directory_sync (\(newColumns)) SELECT :source, :run, :now, 0, 0, 0, 0, 0 /*M! FROM DUAL */
        WHERE NOT EXISTS (SELECT 1 FROM directory_sync s WHERE s.name = :source) AND \(holdsTask)
        """)

    private static let startDueRun = Statement(
        """
        UPDATE directory_sync SET run = :run, started_at = :now, ended_at = NULL
        WHERE name = :source AND started_at <= :before AND \(holdsTask)
        """)

    private static let releaseUnused = Statement(
        """
        UPDATE task_lease SET holder = NULL WHERE name = :task AND holder = :relay
        AND NOT EXISTS (SELECT 1 FROM directory_sync s WHERE s.name = :source AND s.run = :run)
        """)
}

// MARK: Ending

extension DirectoryRuns {
    /// Records the end of a run, if it is still the newest one. The answer is whether it is.
    ///
    /// - Parameter result: the counts, or the reason of the failure.
    public static func end(
        _ source: String, _ run: OperationID, _ result: Result<Counts, DirectoryFault>, at now: Timestamp
    ) -> Query<Bool> {
        let write: BoundStatement
        switch result {
        case .success(let counts):
            write = endRun(
                now: .timestamp(now), users: .integer(Int64(counts.users)), added: .integer(Int64(counts.added)),
                changed: .integer(Int64(counts.changed)), disabled: .integer(Int64(counts.disabled)),
                conflicts: .integer(Int64(counts.conflicts)), source: .text(source), run: .id(run))
        case .failure(let fault):
            write = failRun(
                now: .timestamp(now), error: .text(String(fault.message.prefix(512))), source: .text(source),
                run: .id(run))
        }
        let script = Script("directory sync", writes: [write], reads: [lastByName(source: .text(source))])
        return Query(script: script) { rows throws(StoreFailure) in try isRun(run, in: rows[0]) }
    }

    /// Whether this run is still the newest one of its source.
    public static func isStillNewest(_ source: String, _ run: OperationID) -> Query<Bool> {
        Query(script: Script("directory sync", reads: [lastByName(source: .text(source))])) {
            rows throws(StoreFailure) in try isRun(run, in: rows[0])
        }
    }

    private static func isRun(_ run: OperationID, in rows: Rows) throws(StoreFailure) -> Bool {
        try rows.first?.blob("run") == run.bytes
    }

    private static let endRun = Statement(
        """
        UPDATE directory_sync SET ended_at = :now, error = NULL, succeeded_at = :now, users = :users, added = :added,
        changed = :changed, disabled = :disabled, conflicts = :conflicts WHERE name = :source AND run = :run
        """)

    private static let failRun = Statement(
        "UPDATE directory_sync SET ended_at = :now, error = :error WHERE name = :source AND run = :run")

    /// Releases the lease of a source, so that another relay may take the next turn.
    public static func release(_ source: String, by relay: RelayID) -> Query<Void> {
        let script = Script(
            "directory turn",
            writes: [releaseTask(task: .text("directory \(source)"), relay: .id(relay))])
        return Query(script: script) { _ in () }
    }

    private static let releaseTask = Statement(
        "UPDATE task_lease SET holder = NULL WHERE name = :task AND holder = :relay")
}

/// The reason of a failed sync, as the store keeps it.
public struct DirectoryFault: Error, Sendable, Equatable {
    public let message: String

    public init(_ message: String) { self.message = message }
}

// MARK: Reading

extension DirectoryRuns {
    /// Reads how the syncs of each source ended, by its name.
    public static let all = Query(script: Script("directory list", reads: [everyLast()])) {
        rows throws(StoreFailure) -> [String: Last] in
        var all: [String: Last] = [:]
        for row in rows[0] { all[try row.text("name")] = try last(row) }
        return all
    }

    private static let columns = """
        SELECT name, run, started_at, ended_at, error, succeeded_at, users, added, changed, disabled, conflicts
        FROM directory_sync
        """
    private static let everyLast = Statement(columns)
    private static let lastByName = Statement("\(columns) WHERE name = :source")

    private static func last(_ row: Row) throws(StoreFailure) -> Last {
        var counts = Counts()
        counts.users = Int(try row.integer("users"))
        counts.added = Int(try row.integer("added"))
        counts.changed = Int(try row.integer("changed"))
        counts.disabled = Int(try row.integer("disabled"))
        counts.conflicts = Int(try row.integer("conflicts"))
        return Last(
            startedAt: try row.timestamp("started_at"), endedAt: try row.optionalTimestamp("ended_at"),
            error: try row.optionalText("error"), succeededAt: try row.optionalTimestamp("succeeded_at"),
            counts: counts)
    }
}
