import Bytes
import Crypto

/// A store in the website's own database, by the website's own driver. The clients of other languages
/// use the same tables, so websites in several languages can share them.
///
/// Drivers differ in how they report changed rows and rows that are there already. So each function is
/// a transaction that first locks a row by an UPDATE, then reads, and then changes. If two insert the
/// same row at once, one of the transactions fails. It runs once more then, and finds the row. The same
/// helps after a deadlock.
///
/// Invariant: the rows of a user are changed only after the rows of the user's secrets are locked. Of
/// two that pin at once, the second waits there, and then finds no secret. Tested in
/// `StoreTests.swift`.
public struct SQLStore: Store {
    /// The form in which a database marks the values of a statement.
    public enum Dialect: Sendable {
        /// `?`
        case sqlite, mysql
        /// `$1`, `$2`, …
        case postgreSQL
    }

    private let database: any StoreDatabase
    private let dialect: Dialect

    /// Creates a store. Call `createTables` once, or create the tables by other means.
    public init(_ database: any StoreDatabase, _ dialect: Dialect) {
        self.database = database
        self.dialect = dialect
    }

    /// VARCHAR rather than TEXT: MySQL has no key over a TEXT.
    private static let tables = [
        "twoefay_user (name VARCHAR(64) PRIMARY KEY, token VARCHAR(255) NOT NULL)",
        "twoefay_secret (name VARCHAR(64) NOT NULL, k VARCHAR(64) NOT NULL, at BIGINT NOT NULL, PRIMARY KEY (name, k))",
        "twoefay_phone (name VARCHAR(64) NOT NULL, device VARCHAR(255) NOT NULL, jwk VARCHAR(1000) NOT NULL, "
            + "revoked SMALLINT DEFAULT 0 NOT NULL, PRIMARY KEY (name, device))",
        "twoefay_request (request VARCHAR(64) PRIMARY KEY, at BIGINT NOT NULL)",
        "twoefay_event (event VARCHAR(255) PRIMARY KEY, at BIGINT NOT NULL)",
    ]

    /// Creates the tables that are missing.
    public func createTables() async throws {
        for table in Self.tables {
            _ = try await transaction { run in try await run("CREATE TABLE IF NOT EXISTS \(table)", []) }
        }
    }

    // MARK: Statements

    /// Runs one statement with its values, which are marked by `?`.
    private typealias Run = @Sendable (_ statement: String, _ values: [StoreValue]) async throws -> [[String]]

    /// Runs a transaction, and once more if it fails.
    private func transaction<Value: Sendable>(_ work: @escaping @Sendable (Run) async throws -> Value) async throws
        -> Value
    {
        do {
            return try await attempt(work)
        } catch {
            guard !Task.isCancelled else { throw error }
            return try await attempt(work)
        }
    }

    /// Inserts a row, or does `other` if the row is there already. The INSERT comes first: MySQL locks
    /// the gap in which an UPDATE finds no row, and two that insert there would wait for each other.
    ///
    /// - Parameter other: returns whether the row is there.
    private func insert(
        _ insert: @escaping @Sendable (Run) async throws -> Void,
        orIfThere other: @escaping @Sendable (Run) async throws -> Bool
    ) async throws {
        do {
            try await attempt(insert)
        } catch {
            // Otherwise the database was busy.
            guard try await transaction(other) else { return try await attempt(insert) }
        }
    }

    private func attempt<Value: Sendable>(_ work: @escaping @Sendable (Run) async throws -> Value) async throws -> Value
    {
        try await database.transaction { execute in
            try await work { statement, values in try await execute(marked(statement), values) }
        }
    }

    /// Replaces each `?` by the mark of the database.
    private func marked(_ statement: String) -> String {
        guard dialect == .postgreSQL else { return statement }
        let parts = statement.split(separator: "?", omittingEmptySubsequences: false)
        return parts.dropFirst().enumerated().reduce(String(parts[0])) { $0 + "$\($1.offset + 1)" + $1.element }
    }

    /// Returns the name as a key. Databases compare texts without case or trailing spaces, as their
    /// collation says: another user's phone must not count because of that.
    private static func key(_ username: String) -> StoreValue {
        .text(Hex.encode(SHA256.hash(Array(username.utf8))))
    }

    /// Locks the rows of the user's secrets.
    private static func lock(_ name: StoreValue, _ run: Run) async throws {
        _ = try await run("UPDATE twoefay_secret SET at = at WHERE name = ?", [name])
    }

    /// Deletes old rows by their keys: a search by time would lock the rows of others in MySQL. It
    /// deletes some at a time, so that one login does not wait for all.
    private func deleteOld(_ table: String, _ column: String, before: Int64) async throws {
        let old = try await transaction { run in
            try await run("SELECT \(column) FROM \(table) WHERE at < ? LIMIT 100", [.integer(before)])
        }
        for key in old.compactMap(\.first) {
            // Again with the time: the row may be another one meanwhile.
            _ = try await transaction { run in
                try await run(
                    "DELETE FROM \(table) WHERE \(column) = ? AND at < ?", [.text(key), .integer(before)])
            }
        }
    }

    // MARK: Users and secrets

    public func addUser(_ username: String, token: String) async throws {
        let name = Self.key(username)
        try await insert(
            { run in
                _ = try await run("INSERT INTO twoefay_user (name, token) VALUES (?, ?)", [name, .text(token)])
            },
            orIfThere: { run in
                _ = try await run("UPDATE twoefay_user SET token = ? WHERE name = ?", [.text(token), name])
                return try await !run("SELECT name FROM twoefay_user WHERE name = ?", [name]).isEmpty
            })
    }

    public func token(of username: String) async throws -> String? {
        try await transaction { run in
            try await run("SELECT token FROM twoefay_user WHERE name = ?", [Self.key(username)]).first?.first
        }
    }

    public func addSecret(_ k: [UInt8], of username: String, at now: Int64) async throws {
        try await deleteOld("twoefay_secret", "name", before: now - StoreLife.day)
        _ = try await transaction { run in
            try await run(
                "INSERT INTO twoefay_secret (name, k, at) VALUES (?, ?, ?)",
                [Self.key(username), .text(Base64URL.encode(k)), .integer(now)])
        }
    }

    public func secrets(of username: String, at now: Int64) async throws -> [[UInt8]] {
        let rows = try await transaction { run in
            try await run(
                "SELECT k FROM twoefay_secret WHERE name = ? AND at > ?",
                [Self.key(username), .integer(now - StoreLife.day)])
        }
        return rows.compactMap { row in row.first.flatMap { Base64URL.decode($0) } }
    }

    // MARK: Phones

    public func pin(_ phone: PinnedPhone, of username: String, with k: [UInt8]) async throws -> Bool {
        let (name, device) = (Self.key(username), StoreValue.text(phone.device))
        return try await transaction { run in
            try await Self.lock(name, run)
            let secret = try await run(
                "SELECT k FROM twoefay_secret WHERE name = ? AND k = ?", [name, .text(Base64URL.encode(k))])
            let known = try await run("SELECT device FROM twoefay_phone WHERE name = ? AND device = ?", [name, device])
            guard !secret.isEmpty, known.isEmpty else { return false }
            _ = try await run("DELETE FROM twoefay_secret WHERE name = ?", [name])
            _ = try await run(
                "INSERT INTO twoefay_phone (name, device, jwk) VALUES (?, ?, ?)", [name, device, .text(phone.jwk)])
            return true
        }
    }

    public func pins(of username: String) async throws -> [PinnedPhone] {
        let rows = try await transaction { run in
            try await run(
                "SELECT device, jwk FROM twoefay_phone WHERE name = ? AND revoked = 0", [Self.key(username)])
        }
        return rows.compactMap { row in row.count == 2 ? PinnedPhone(device: row[0], jwk: row[1]) : nil }
    }

    public func wasPinned(_ username: String) async throws -> Bool {
        try await transaction { run in
            try await !run("SELECT device FROM twoefay_phone WHERE name = ?", [Self.key(username)]).isEmpty
        }
    }

    public func unpin(_ device: String, of username: String) async throws {
        try await revoke(.text(device), Self.key(username))
    }

    public func unpin(_ device: String, ofToken token: String) async throws {
        let names = try await transaction { run in
            try await run("SELECT name FROM twoefay_user WHERE token = ?", [.text(token)])
        }
        for name in names.compactMap(\.first) { try await revoke(.text(device), .text(name)) }
    }

    private func revoke(_ device: StoreValue, _ name: StoreValue) async throws {
        try await transaction { run in
            // If this phone is pinned just now, this waits, and the rest finds its row.
            try await Self.lock(name, run)
            _ = try await run(
                "DELETE FROM twoefay_secret WHERE name = ? AND NOT EXISTS"
                    + " (SELECT 1 FROM twoefay_phone WHERE name = ? AND device = ? AND revoked = 1)",
                [name, name, device])
            _ = try await run("UPDATE twoefay_phone SET revoked = 1 WHERE name = ? AND device = ?", [name, device])
        }
    }

    public func forget(_ username: String) async throws {
        let name = Self.key(username)
        try await transaction { run in
            try await Self.lock(name, run)
            for table in ["user", "secret", "phone"] {
                _ = try await run("DELETE FROM twoefay_\(table) WHERE name = ?", [name])
            }
        }
    }

    // MARK: Requests and events

    public func open(_ request: String, at now: Int64) async throws {
        try await deleteOld("twoefay_request", "request", before: now - StoreLife.day)
        _ = try await transaction { run in
            try await run("INSERT INTO twoefay_request (request, at) VALUES (?, ?)", [.text(request), .integer(now)])
        }
    }

    public func spend(_ request: String) async throws -> Bool {
        try await transaction { run in
            // A second caller waits here, and then finds no row.
            _ = try await run("UPDATE twoefay_request SET at = at WHERE request = ?", [.text(request)])
            let found = try await run("SELECT request FROM twoefay_request WHERE request = ?", [.text(request)])
            _ = try await run("DELETE FROM twoefay_request WHERE request = ?", [.text(request)])
            return !found.isEmpty
        }
    }

    public func hasSeen(_ event: String) async throws -> Bool {
        try await transaction { run in
            try await !run("SELECT event FROM twoefay_event WHERE event = ?", [.text(event)]).isEmpty
        }
    }

    public func see(_ event: String, at now: Int64) async throws {
        try await deleteOld("twoefay_event", "event", before: now - StoreLife.event)
        try await insert(
            { run in
                _ = try await run(
                    "INSERT INTO twoefay_event (event, at) VALUES (?, ?)", [.text(event), .integer(now)])
            },
            orIfThere: { run in
                try await !run("SELECT event FROM twoefay_event WHERE event = ?", [.text(event)]).isEmpty
            })
    }
}
