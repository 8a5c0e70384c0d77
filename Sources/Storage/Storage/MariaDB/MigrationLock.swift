import World

/// Who of several programs, each at another node of a Galera cluster, changes the tables. No lock of MariaDB reaches
/// further than a node, and two nodes that are told to make the same view at once wait for each other for ever, and with
/// them the whole cluster. So the right to do it is a row, which Galera gives to one.
///
/// Whoever has it moves its beat before each statement. One that was killed does not, and after a while another takes its
/// place. Should it live all the same, because a statement of it takes long, it finds its row gone and does no more: what
/// takes the row is committed behind that statement, on all nodes.
struct MigrationLock {
    private let session: any Session
    private let holder: [UInt8]

    /// So long a beat may stand still.
    static let timeout = Duration.seconds(20)
    /// Between two looks.
    private static let pause = Duration.milliseconds(250)

    private static let isOfACluster = Statement(
        """
        SELECT COUNT(*) FROM information_schema.global_variables
        WHERE variable_name = 'WSREP_ON' AND variable_value = 'ON'
        """)
    private static let isThere = Statement(
        """
        SELECT COUNT(*) FROM information_schema.tables
        WHERE table_schema = DATABASE() AND table_name = 'migrating'
        """)
    private static let table = """
        CREATE TABLE IF NOT EXISTS migrating (
            one int NOT NULL PRIMARY KEY,
            holder binary(16),
            beat bigint NOT NULL
        ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin
        """
    private static let row = Statement(
        "INSERT INTO migrating (one, holder, beat) VALUES (1, NULL, 0) ON DUPLICATE KEY UPDATE one = migrating.one")
    private static let look = Statement("SELECT beat, holder IS NULL FROM migrating WHERE one = 1")
    private static let take = Statement("UPDATE migrating SET holder = ?, beat = beat + 1 WHERE one = 1 AND beat = ?")
    private static let move = Statement("UPDATE migrating SET beat = beat + 1 WHERE one = 1 AND holder = ?")
    private static let isMine = Statement("SELECT COUNT(*) FROM migrating WHERE one = 1 AND holder = ?")
    private static let drop = Statement("UPDATE migrating SET holder = NULL, beat = beat + 1 WHERE holder = ?")

    /// Whether that database is one of several nodes.
    static func isNeeded(_ session: any Session) throws(SessionFailure) -> Bool {
        try number(isOfACluster, session) == 1
    }

    /// Waits until nobody else has it.
    init(_ session: any Session, timeout: Duration = Self.timeout) throws(SessionFailure) {
        self.session = session
        holder = SystemRandomness().bytes(16)
        if try Self.number(Self.isThere, session) == 0 { try session.execute(Self.table) }
        try transaction { () throws(SessionFailure) in _ = try session.run([BoundStatement(Self.row)]) }
        var seen: (beat: Int64, turns: Duration)?
        while true {
            let rows = try transaction { () throws(SessionFailure) in try session.run([BoundStatement(Self.look)])[0] }
            guard let row = rows.first, case .integer(let beat)? = try? row.value(0) else {
                throw .statement("the table migrating has no row")
            }
            let stands = seen.flatMap { $0.beat == beat ? $0.turns : nil } ?? .zero
            if row.isFree || stands >= timeout {
                try transaction { () throws(SessionFailure) in
                    _ = try session.run([BoundStatement(Self.take, .blob(holder), .integer(beat))])
                }
                if try isHeld() { return }
                seen = nil
                continue
            }
            try session.execute("DO SLEEP(0.25)")
            seen = (beat, stands + Self.pause)
        }
    }

    /// Before each statement; a failure when it is another's by now.
    func renew() throws(SessionFailure) {
        try transaction { () throws(SessionFailure) in _ = try session.run([BoundStatement(Self.move, .blob(holder))]) }
        guard try isHeld() else { throw .conflict("another program took over the migration of this database") }
    }

    /// If it cannot be said, somebody has to wait for as long as for one that was killed.
    func release() {
        try? transaction { () throws(SessionFailure) in _ = try session.run([BoundStatement(Self.drop, .blob(holder))])
        }
    }

    private func isHeld() throws(SessionFailure) -> Bool {
        try transaction { () throws(SessionFailure) in
            try session.run([BoundStatement(Self.isMine, .blob(holder))]).first?.first.flatMap { try? $0.value(0) }
                == .integer(1)
        }
    }

    /// Again where another node was first: what it did is looked at anew.
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

    private static func number(_ statement: Statement, _ session: any Session) throws(SessionFailure) -> Int64? {
        let rows = try session.run([BoundStatement(statement)])
        guard case .integer(let number)? = try? rows.first?.first?.value(0) else { return nil }
        return number
    }
}

extension Row {
    fileprivate var isFree: Bool { (try? value(1)) == .integer(1) }
}
