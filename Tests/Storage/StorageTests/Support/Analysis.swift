@testable import Storage

extension StorageURL {
    /// Lets MariaDB count the rows of tables again, by which it chooses its plans. SQLite chooses them
    /// without. ANALYZE commits, so it is no part of a script.
    func analyze(_ tables: String) throws {
        guard dialect == .mariadb else { return }
        let session = try session(.writing)
        defer { session.close() }
        try session.begin(.writing)
        try session.execute("ANALYZE TABLE \(tables)")
    }
}
