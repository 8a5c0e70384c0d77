import Relay

/// A MariaDB database into which a copy of a store is loaded as SQL.
///
/// Purpose: a load that was interrupted is begun again, and tables that the command has not made
/// itself are never dropped.
///
/// Invariant: the table `restoring_copy` is made in a database without tables of a store, before the
/// first table is loaded, and dropped after the last one. While it exists, all tables of the store
/// come from the interrupted load.
public struct LoadedDatabase {
    /// The content of the database.
    public enum State: Sendable, Equatable {
        /// No tables of a store.
        case empty
        /// The tables of a load that was interrupted.
        case interrupted
        /// The tables of a store.
        case store
    }

    private let url: StorageURL

    public init(_ url: StorageURL) { self.url = url }

    public func state() throws(StoreFailure) -> State {
        try with { session throws(SessionFailure) in
            let tables = try Self.tables(session)
            if tables.contains(Self.mark) { return .interrupted }
            return StoreTables.names.contains(where: tables.contains) ? .store : .empty
        }
    }

    /// Prepares for the load: drops what an interrupted one has left, and sets the mark.
    public func begin() throws(StoreFailure) {
        try with { session throws(SessionFailure) in
            let tables = try Self.tables(session)
            if tables.contains(Self.mark) {
                for table in StoreTables.names where tables.contains(table) {
                    try session.execute("DROP TABLE `\(table)`")
                }
            } else {
                guard !StoreTables.names.contains(where: tables.contains) else {
                    throw .refused("the database has tables of a store")
                }
                try session.execute("CREATE TABLE \(Self.mark) (id int NOT NULL PRIMARY KEY) ENGINE=InnoDB")
            }
        }
    }

    /// Removes the mark, after the copy is loaded.
    public func end() throws(StoreFailure) {
        try with { session throws(SessionFailure) in try session.execute("DROP TABLE IF EXISTS \(Self.mark)") }
    }

    /// Returns the names of triggers, routines and events in the database.
    public func programs() throws(StoreFailure) -> [String] {
        try with { session throws(SessionFailure) in Array(try Self.names(Self.programs(), session)).sorted() }
    }

    private static let mark = "restoring_copy"

    private static func tables(_ session: any Session) throws(SessionFailure) -> Set<String> {
        try names(tableNames(), session)
    }

    private static func names(
        _ statement: BoundStatement, _ session: any Session
    ) throws(SessionFailure) -> Set<String> {
        try session.begin(.reading)
        let rows = try session.run([statement])
        try session.commit()
        do throws(StoreFailure) {
            var names: Set<String> = []
            for row in rows[0] { names.insert(try row.text("name")) }
            return names
        } catch {
            throw .statement("\(error)")
        }
    }

    private static let programs = Statement(
        """
        SELECT trigger_name AS name FROM information_schema.triggers WHERE trigger_schema = DATABASE()
        UNION ALL SELECT routine_name FROM information_schema.routines WHERE routine_schema = DATABASE()
        UNION ALL SELECT event_name FROM information_schema.events WHERE event_schema = DATABASE()
        """)

    private static let tableNames = Statement(
        """
        SELECT table_name AS name FROM information_schema.tables
        WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE'
        """)

    private func with<Answer>(
        _ body: (any Session) throws(SessionFailure) -> Answer
    ) throws(StoreFailure) -> Answer {
        do throws(SessionFailure) {
            let session = try url.session(.migrating)
            defer { session.close() }
            return try body(session)
        } catch {
            throw .unavailable("\(url): \(error.message)")
        }
    }
}
