import Glibc
import TestSupport
import Testing

@testable import Storage

/// A copy of a SQLite store that is written to meanwhile.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct SQLiteBackupTests {
    private let directory: TemporaryDirectory
    private let source: SQLiteSession
    private var path: String { directory("store.db") }
    private var copy: String { directory("copy.db") }

    /// A database of about twelve megabytes. Its log is not copied into it.
    init() throws {
        directory = try TemporaryDirectory()
        source = try SQLiteSession(path: directory("store.db"), mode: .creating, timeout: .seconds(5))
        try source.execute("PRAGMA wal_autocheckpoint = 0")
        try source.execute("CREATE TABLE entry (id integer PRIMARY KEY, text text); CREATE TABLE empty (id integer)")
        try source.execute(
            """
            WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
            INSERT INTO entry (text) SELECT hex(zeroblob(1000)) FROM n
            """)
        try TextFile.write("", to: directory("copy.db"))
    }

    private func count(_ path: String) async throws -> String {
        try await Child.run("sqlite3", [path, "SELECT count(*) FROM entry"]).output
    }

    /// SQLite's online backup alone begins anew after each of these writes, and never ends.
    @Test func copyIsOneMomentOfAStoreThatOthersWrite() async throws {
        var steps: [(done: Int, all: Int)] = []
        let counts = try SQLiteBackup.copy(path, to: copy) { done, all in
            steps.append((done, all))
            do {
                try source.execute("INSERT INTO entry (text) VALUES (hex(zeroblob(4000)))")
                try source.execute("INSERT INTO empty VALUES (1)")
            } catch {
                Issue.record("\(error)")
            }
        }
        #expect(counts == ["entry": 5000, "empty": 0])
        #expect(try await count(copy) == "5000\n")
        #expect(steps.count >= 3)
        #expect(try await count(path) == "\(5000 + steps.count)\n")
        // The progress grows to the end.
        #expect(zip(steps, steps.dropFirst()).allSatisfy { $0.done < $1.done })
        #expect(steps.last.map { $0.done == $0.all } == true)
    }

    /// SQLite writes a commit to its log first, so a copy of the database file alone lacks the last
    /// commits.
    @Test func copyHasWhatIsInTheLog() async throws {
        let alone = directory("alone.db")
        try TextFile.write(try TextFile.bytes(path), to: alone)
        let lost = try await Child.run("sqlite3", [alone, "SELECT count(*) FROM entry"])
        #expect(lost.status != 0 && lost.errors.contains("no such table"), "\(lost)")
        _ = try SQLiteBackup.copy(path, to: copy)
        #expect(try await count(copy) == "5000\n")
    }

    @Test func copyIsASingleFile() throws {
        _ = try SQLiteBackup.copy(path, to: copy)
        #expect(TemporaryDirectory.names(in: directory("")).filter { $0.hasPrefix("copy") } == ["copy.db"])
        // Bytes 18 and 19 of the header are 1: no write-ahead log.
        #expect(try TextFile.bytes(copy)[18...19] == [1, 1])
    }

    @Test func fileThatIsNoDatabaseIsRefused() throws {
        let other = directory("other.db")
        try TextFile.write(String(repeating: "no database ", count: 100), to: other)
        #expect(throws: SQLiteBackup.Fault.self) { try SQLiteBackup.copy(other, to: copy) }
        #expect(throws: SQLiteBackup.Fault.self) { try SQLiteBackup.copy(directory("missing.db"), to: copy) }
    }
}
