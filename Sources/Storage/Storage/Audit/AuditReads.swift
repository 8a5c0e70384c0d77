/// The reads of `AuditVerification`. All of them walk along a primary key or look up single rows.
enum AuditReads {
    static let pageSize = 500

    static let writers = Statement("SELECT \(SignedTable.auditWriter.columns) FROM audit_writer ORDER BY id")
    static let checkpoints = Statement(
        "SELECT \(SignedTable.auditCheckpoint.columns) FROM audit_checkpoint ORDER BY writer")
    static let lastRow = Statement("SELECT max(id) AS last FROM audit")
    static let nextChain = Statement("SELECT min(writer) AS writer FROM audit_link WHERE writer > :writer")
    static let links = Statement(
        """
        SELECT \(AuditLink.columns) FROM audit_link WHERE writer = :writer AND sequence > :sequence
        ORDER BY sequence LIMIT 200
        """)
    static let link = Statement(
        "SELECT \(AuditLink.columns) FROM audit_link WHERE writer = :writer AND sequence = :sequence")
    static let rows = Statement(
        """
        SELECT \(columns) FROM audit a LEFT JOIN audit_detail d ON d.operation = a.operation
        WHERE a.id > :id AND a.id <= :last ORDER BY a.id LIMIT \(pageSize)
        """)
    static let row = Statement(
        """
        SELECT \(columns) FROM audit a LEFT JOIN audit_detail d ON d.operation = a.operation
        WHERE a.operation = :operation
        """)

    /// The columns that the digest covers, and then the words.
    private static let columns =
        (AuditRow.columns.map { "a.\($0)" } + ["d.salt", "d.note", "d.changes", "d.reason"]).joined(separator: ", ")
}
