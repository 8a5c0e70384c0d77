import World

extension Store {
    /// Creates the tables of an earlier version in an empty database, as its programs did, for tests of
    /// updates.
    ///
    /// - Parameters:
    ///   - text: the statements, in the form of `schema.sql`.
    ///   - version: the version of the tables.
    package static func createFormerTables(
        _ text: String, version: Int64, at url: StorageURL, now: Timestamp
    ) throws {
        try [Migration(version: version, file: text)].migrate(url, at: now)
    }
}
