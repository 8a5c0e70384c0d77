/// The names of all tables of a store.
public enum StoreTables {
    /// The tables of `schema.sql`, and the one that has the version of the schema. The lock of
    /// migrations is not among them: a migration makes it.
    public static let names = Migration.tables(in: SchemaText.sql) + [MigrationTable.name]

    /// The tables of a store that has not been migrated beyond this version.
    public static func names(of version: Int64) -> [String] {
        let later = Migration.all.filter { $0.version > version }.flatMap { Migration.tables(in: $0.file) }
        return names.filter { !later.contains($0) }
    }
}
