/// The names of all tables of a store.
public enum StoreTables {
    /// The tables of `schema.sql`, and the one that has the version of the schema. The lock of
    /// migrations is not among them: a migration makes it.
    public static let names = Migration.tables(in: SchemaText.sql) + [MigrationTable.name]
}
