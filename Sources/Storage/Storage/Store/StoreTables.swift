/// The names of all tables of a store.
public enum StoreTables {
    private static let opening = "CREATE TABLE IF NOT EXISTS "

    /// The tables of `schema.sql`, and the one that has the version of the schema. The lock of
    /// migrations is not among them: a migration makes it.
    public static let names: [String] =
        SchemaText.sql.split(separator: "\n").filter { $0.hasPrefix(opening) }.map { line in
            String(line.dropFirst(opening.count).prefix { $0 != " " })
        } + ["migration"]
}
