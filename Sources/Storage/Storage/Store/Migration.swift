/// A numbered change of the tables.
///
/// Purpose: operators replace relays one at a time, while logins continue. They first install the
/// new programs, which still use the old tables, then they run `twoefay migrate`. A change
/// therefore only adds what programs of the previous version can ignore: tables, indices, and
/// columns that may be NULL or have a default. A program uses new tables and columns only if
/// `Store.schemaVersion` includes them. A later version removes what no program uses any more.
///
/// Invariants: versions have no gaps. Every statement can run again after a crash in the middle,
/// because MariaDB commits each statement of a schema change by itself. A new store is created from
/// `schema.sql` in one step; an older one gets the changes after its version in turn, and has the
/// same tables then. A change that a package contains is never edited again.
///
/// `SchemaEqualityTests.swift`, `RollingUpgradeTests.swift` and `MigrationTests.swift` test it.
struct Migration: Sendable {
    let version: Int64
    /// The oldest tables with which a program of this version works.
    let worksOn: Int64
    /// The oldest program that works with the tables of this version, as the newest version that
    /// the program knows.
    let least: Int64
    /// The effect of the change, as a part of a sentence for operators.
    let summary: String
    /// The SQL statements, in the form of `schema.sql`. Those of the first migration create its
    /// tables.
    let file: String
    /// The statements that create all tables of this version in an empty database; nil: a new store
    /// gets an earlier version and then this change.
    private(set) var whole: String?

    /// Creates a migration. By default this version's programs and tables need each other.
    init(version: Int64, worksOn: Int64? = nil, least: Int64? = nil, summary: String = "", file: String) {
        self.version = version
        self.worksOn = worksOn ?? version
        self.least = least ?? version
        self.summary = summary
        self.file = file
    }

    /// Returns this migration, with the statements for a new store.
    func creating(_ text: String) -> Migration {
        var migration = self
        migration.whole = text
        return migration
    }

    /// All migrations, oldest first, without a gap. The first version is 2, that of the first
    /// package; only the tests still have its text. Stores of schema 1 derived secrets from ids and
    /// the master key. Schema 1 was never released, and `migrate` refuses it.
    static let all = [Migration(version: 2, file: ""), schema3.creating(SchemaText.sql)]
}

extension [Migration] {
    /// The newest version that a program with these migrations knows.
    var known: Int64 { last?.version ?? 0 }

    /// The migration whose statements create a new store.
    var creation: Migration? { last { $0.whole != nil } ?? first }
}

extension Migration {
    /// The statements that create a new store of this version.
    var creationText: String { whole ?? file }

    /// The names of the tables that a text creates.
    static func tables(in text: String) -> [String] { names(after: "CREATE TABLE IF NOT EXISTS ", in: text) }

    /// The names of the views that a text creates.
    static func views(in text: String) -> [String] { names(after: "CREATE VIEW IF NOT EXISTS ", in: text) }

    private static func names(after opening: String, in text: String) -> [String] {
        text.split(separator: "\n").filter { $0.hasPrefix(opening) }.map { line in
            String(line.dropFirst(opening.count).prefix { $0 != " " })
        }
    }
}
