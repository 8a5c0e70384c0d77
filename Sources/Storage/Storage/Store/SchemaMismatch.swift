/// A database whose tables this program cannot work with, and what the operator does about it.
struct SchemaMismatch: Error, Equatable {
    let reason: String
    let remedy: String

    private static let migrate = "twoefay --config FILE migrate"

    static let noTables = SchemaMismatch(
        reason: "the database has no tables yet", remedy: "Create them: \(migrate)")

    /// The tables are of a version before the first migration.
    static func forerunner(_ version: Int64) -> SchemaMismatch {
        SchemaMismatch(
            reason: "the database has schema \(version), which cannot be brought up to date",
            remedy: "Start anew with an empty database: \(migrate)")
    }

    /// The creation of the tables was interrupted. Only the version that began it can finish it.
    ///
    /// - Parameters:
    ///   - version: the schema that was created; nil: unknown.
    ///   - known: that of this program.
    static func incomplete(_ version: Int64?, known: Int64) -> SchemaMismatch {
        SchemaMismatch(
            reason: "the tables of the database are incomplete: their creation "
                + (version.map { "with schema \($0) " } ?? "by another program ") + "was interrupted",
            remedy: version == known
                ? "Finish it: \(migrate)"
                : "No relay has used them. Finish with the version that began, or drop the database, create "
                    + "it anew and run: \(migrate)")
    }

    /// Another program has migrated the tables for as long as this one waits.
    static let busy = SchemaMismatch(
        reason: "another program has been migrating this database for ten minutes",
        remedy: "Wait for it, or end it (SHOW PROCESSLIST shows its connection), and run again: \(migrate)")

    /// The tables are too old for the program.
    static func older(_ version: Int64, least: Int64) -> SchemaMismatch {
        SchemaMismatch(
            reason: "the database has schema \(version) and this program needs \(least) or later",
            remedy: "If no relay of an earlier version runs, update the tables: \(migrate). Otherwise logins would "
                + "fail: install the versions between in turn (docs/operators/store.md, Updates).")
    }

    /// The program is too old for the tables.
    static func newer(_ version: Int64, least: Int64, known: Int64) -> SchemaMismatch {
        SchemaMismatch(
            reason: "the database has schema \(version), for programs that know \(least) or later, and this program "
                + "knows no more than \(known)",
            remedy: "Install the version of Twoefay that made the tables, or a later one (Debian: apt-get install "
                + "twoefay), and start it again: systemctl restart twoefayd")
    }
}

extension [Migration] {
    /// Returns the version of the tables.
    ///
    /// - Throws: `SchemaMismatch` if this program cannot work with them, or the failure of the session.
    func check(_ session: any Session) throws -> Int64 {
        try session.begin(.reading)
        let found: MigrationTable.Version?
        do throws(SessionFailure) {
            found = try MigrationTable.newest(session)
            try session.commit()
        } catch {
            session.rollBack()
            throw error
        }
        guard let found else { throw SchemaMismatch.noTables }
        if let mismatch = mismatch(found) { throw mismatch }
        let oldest = last?.worksOn ?? 0
        guard found.version >= oldest else { throw SchemaMismatch.older(found.version, least: oldest) }
        return found.version
    }

    /// Returns the reason why no migration leads from a version to one that this program can use; nil
    /// if one does.
    func mismatch(_ found: MigrationTable.Version) -> SchemaMismatch? {
        if found.version < 0 { return .incomplete(-found.version, known: known) }
        if let first, found.version < first.version { return .forerunner(found.version) }
        guard found.version <= known || found.least <= known else {
            return .newer(found.version, least: found.least, known: known)
        }
        return nil
    }
}
