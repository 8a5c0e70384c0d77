import World

/// The lock of a migration in a Galera cluster.
///
/// Purpose: MariaDB's locks work on one node only. If two nodes create the same view at once, they
/// wait for each other forever, and the whole cluster waits with them. The lock is therefore a row,
/// which Galera gives to one program.
///
/// Invariant: the holder increments the row's heartbeat before each statement. If the heartbeat
/// stands still for `timeout`, another program takes the lock over.
///
/// Failures: a holder may still be alive because one of its statements takes long. It then finds
/// that the row is not its own and stops. This is safe, because the take-over is committed after
/// that statement on all nodes.
///
/// `MigrationLockTests.swift` and `ClusterTests.swift` test it.
struct MigrationLock {
    private let session: any Session
    private let holder: [UInt8]

    /// The time for which the heartbeat may stand still before another program takes over.
    static let timeout = Duration.seconds(20)
    /// The time between two reads of the heartbeat.
    private static let pause = Duration.milliseconds(250)

    /// Whether the database belongs to a cluster of several nodes.
    static func isNeeded(_ session: any Session) throws(SessionFailure) -> Bool {
        try session.run([isOfCluster()]).first?.first.flatMap { try? $0.integer("setting_count") } == 1
    }

    private static let isOfCluster = Statement(
        """
        SELECT COUNT(*) AS setting_count FROM information_schema.global_variables
        WHERE variable_name = 'WSREP_ON' AND variable_value = 'ON'
        """)

    /// Waits until the lock is free or its holder's heartbeat stands still, and takes it.
    ///
    /// - Parameter waits: called once if another program holds the lock.
    init(
        _ session: any Session, timeout: Duration = Self.timeout, waits: () -> Void = {}
    ) throws(SessionFailure) {
        self.session = session
        holder = SystemRandomness().bytes(16)
        try createRow()
        var seen: (beat: Int64, turns: Duration)?
        while true {
            let rows = try transaction { () throws(SessionFailure) in try session.run([Self.readRow()])[0] }
            guard let row = rows.first, let beat = try? row.integer("beat") else {
                throw .statement("the table migrating has no row")
            }
            let stands = seen.flatMap { $0.beat == beat ? $0.turns : nil } ?? .zero
            if row.isFree || stands >= timeout {
                try transaction { () throws(SessionFailure) in
                    _ = try session.run([Self.takeOver(holder: .blob(holder), beat: .integer(beat))])
                }
                if try isHeld() { return }
                seen = nil
                continue
            }
            if seen == nil { waits() }
            try session.execute("DO SLEEP(0.25)")
            seen = (beat, stands + Self.pause)
        }
    }

    private static let readRow = Statement("SELECT beat, holder IS NULL AS is_free FROM migrating WHERE one = 1")

    private static let takeOver = Statement(
        "UPDATE migrating SET holder = :holder, beat = beat + 1 WHERE one = 1 AND beat = :beat")

    /// Creates the table and its row, if they do not exist.
    private func createRow() throws(SessionFailure) {
        let tables = try session.run([Self.countOfTables()]).first?.first.flatMap { try? $0.integer("table_count") }
        if tables == 0 { try session.execute(Self.table) }
        try transaction { () throws(SessionFailure) in _ = try session.run([Self.insertRow()]) }
    }

    private static let countOfTables = Statement(
        """
        SELECT COUNT(*) AS table_count FROM information_schema.tables
        WHERE table_schema = DATABASE() AND table_name = 'migrating'
        """)

    private static let table = """
        CREATE TABLE IF NOT EXISTS migrating (
            one int NOT NULL PRIMARY KEY,
            holder binary(16),
            beat bigint NOT NULL
        ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin
        """

    private static let insertRow = Statement(
        "INSERT INTO migrating (one, holder, beat) VALUES (1, NULL, 0) ON DUPLICATE KEY UPDATE one = migrating.one")

    /// Increments the heartbeat. It must be called before each statement, and fails if another
    /// program has taken the lock over.
    func renew() throws(SessionFailure) {
        try transaction { () throws(SessionFailure) in _ = try session.run([Self.moveBeat(holder: .blob(holder))]) }
        guard try isHeld() else { throw .conflict("another program took over the migration of this database") }
    }

    private static let moveBeat = Statement("UPDATE migrating SET beat = beat + 1 WHERE one = 1 AND holder = :holder")

    private func isHeld() throws(SessionFailure) -> Bool {
        try transaction { () throws(SessionFailure) in
            try session.run([Self.readHeld(holder: .blob(holder))]).first?.isEmpty == false
        }
    }

    private static let readHeld = Statement("SELECT 1 FROM migrating WHERE one = 1 AND holder = :holder")

    /// Releases the lock. If this fails, the next program waits for `timeout`, as after a crash.
    func release() {
        try? transaction { () throws(SessionFailure) in
            _ = try session.run([Self.freeRow(holder: .blob(holder))])
        }
    }

    private static let freeRow = Statement(
        "UPDATE migrating SET holder = NULL, beat = beat + 1 WHERE holder = :holder")

    /// Runs a transaction, and runs it again if another node committed first.
    @discardableResult private func transaction<Value>(
        _ body: () throws(SessionFailure) -> Value
    ) throws(SessionFailure) -> Value {
        while true {
            do throws(SessionFailure) {
                try session.begin(.writing)
                let value = try body()
                try session.commit()
                return value
            } catch {
                session.rollBack()
                switch error {
                case .conflict, .locked: continue
                default: throw error
                }
            }
        }
    }
}

extension Row {
    fileprivate var isFree: Bool { (try? bool("is_free")) == true }
}
