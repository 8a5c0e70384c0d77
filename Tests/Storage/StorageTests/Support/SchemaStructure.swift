import TestSupport
import Testing

@testable import Storage

/// The tables, columns, indices and views of a database as lines, without the order of columns and
/// without the names that the engine gives to indices.
struct SchemaStructure {
    let lines: Set<String>

    init(_ session: any Session, _ dialect: Dialect) throws {
        var lines: Set<String> = []
        try session.begin(.reading)
        for statement in dialect == .sqlite ? Self.ofSQLite : Self.ofMariaDB {
            for row in try session.run([statement()])[0] {
                let line = try row.text("line").split(whereSeparator: \.isWhitespace).joined(separator: " ")
                // Two lines that are equal would hide the loss of one of them.
                #expect(lines.insert(line).inserted, "\(line)")
            }
        }
        try session.commit()
        self.lines = lines
    }

    private static let ofSQLite = [
        Statement(
            """
            SELECT m.type || ' ' || m.name || ' column ' || c.name || ' ' || c.type || ' notnull ' || c."notnull"
                || ' default ' || coalesce(c.dflt_value, 'none') || ' key ' || c.pk || ' hidden ' || c.hidden AS line
            FROM sqlite_master m JOIN pragma_table_xinfo(m.name) c WHERE m.type IN ('table', 'view')
            """),
        Statement(
            """
            SELECT m.name || ' index ' || CASE i.origin WHEN 'c' THEN i.name ELSE i.origin END || ' unique '
                || i."unique" || ' partial ' || i.partial || ' on ' || (SELECT group_concat(c.name, ' ')
                FROM (SELECT x.name FROM pragma_index_info(i.name) x ORDER BY x.seqno) c) AS line
            FROM sqlite_master m JOIN pragma_index_list(m.name) i WHERE m.type = 'table'
            """),
        Statement("SELECT type || ' ' || sql AS line FROM sqlite_master WHERE type IN ('view', 'trigger')"),
    ]

    private static let ofMariaDB = [
        Statement(
            """
            SELECT concat_ws(' ', table_type, table_name, engine, table_collation) AS line
            FROM information_schema.tables WHERE table_schema = DATABASE()
            """),
        Statement(
            """
            SELECT concat_ws(' ', table_name, 'column', column_name, column_type, 'nullable', is_nullable, 'default',
                coalesce(column_default, 'none'), collation_name, extra) AS line
            FROM information_schema.columns WHERE table_schema = DATABASE()
            """),
        Statement(
            """
            SELECT concat_ws(' ', table_name, 'index', index_name, 'nonunique', non_unique, seq_in_index, column_name)
                AS line FROM information_schema.statistics WHERE table_schema = DATABASE()
            """),
        Statement(
            """
            SELECT concat_ws(' ', 'view', table_name, security_type, check_option,
                replace(view_definition, concat('`', DATABASE(), '`.'), '')) AS line
            FROM information_schema.views WHERE table_schema = DATABASE()
            """),
        Statement(
            """
            SELECT concat_ws(' ', 'trigger', trigger_name, action_statement) AS line
            FROM information_schema.triggers WHERE trigger_schema = DATABASE()
            """),
    ]
}

extension TestDatabase {
    /// Reads the structure over a session of its own.
    func structure() throws -> SchemaStructure {
        let session = try url.session(.reading)
        defer { session.close() }
        return try SchemaStructure(session, url.dialect)
    }
}
