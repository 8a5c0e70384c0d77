/// The reads of `AuditVerification`. All of them walk along a primary key or look up single rows.
enum AuditReads {
    static let pageSize = 500
    static let linksOfPage = 200

    static let writers = Statement(
        "SELECT \(SignedTable.auditWriter.columns) FROM audit_writer WHERE id > :writer ORDER BY id LIMIT \(pageSize)")
    static let writer = Statement("SELECT \(SignedTable.auditWriter.columns) FROM audit_writer WHERE id = :writer")
    static let checkpoints = Statement(
        """
        SELECT \(SignedTable.auditCheckpoint.columns) FROM audit_checkpoint WHERE writer > :writer ORDER BY writer
        LIMIT \(pageSize)
        """)
    static let checkpoint = Statement(
        "SELECT \(SignedTable.auditCheckpoint.columns) FROM audit_checkpoint WHERE writer = :writer")
    static let lastRow = Statement("SELECT max(id) AS last FROM audit")
    /// The last number of each chain.
    static let ends = Statement(
        """
        SELECT writer, max(sequence) AS last FROM audit_link WHERE writer > :writer GROUP BY writer ORDER BY writer
        LIMIT \(pageSize)
        """)
    /// The first page needs no number: somebody may have planted a link under the lowest one.
    static let firstLinks = Statement(
        """
        SELECT \(AuditLink.columns) FROM audit_link WHERE writer = :writer \(isNumbered)
        ORDER BY sequence LIMIT \(linksOfPage)
        """)
    static let links = Statement(
        """
        SELECT \(AuditLink.columns) FROM audit_link WHERE writer = :writer AND sequence > :sequence \(isNumbered)
        ORDER BY sequence LIMIT \(linksOfPage)
        """)
    /// The links without a whole number, which SQLite stores as well. Fractions sort among the whole
    /// numbers, so a page could not go on behind them.
    static let strayLinks = Statement(
        """
        SELECT sequence AS stray FROM audit_link WHERE writer = :writer
        AND /*M! sequence IS NULL */ /*S! typeof(sequence) <> 'integer' */ ORDER BY sequence LIMIT 100
        """)
    private static let isNumbered = "/*S! AND typeof(sequence) = 'integer' */"
    static let link = Statement(
        "SELECT \(AuditLink.columns) FROM audit_link WHERE writer = :writer AND sequence = :sequence")
    static let firstRows = Statement(
        """
        SELECT \(columns) FROM audit a LEFT JOIN audit_detail d ON d.operation = a.operation
        WHERE a.id <= :last ORDER BY a.id LIMIT \(pageSize)
        """)
    static let rows = Statement(
        """
        SELECT \(columns) FROM audit a LEFT JOIN audit_detail d ON d.operation = a.operation
        WHERE a.id > :id AND a.id <= :last ORDER BY a.id LIMIT \(pageSize)
        """)
    static let newestRow = Statement(
        """
        SELECT \(columns) FROM audit a LEFT JOIN audit_detail d ON d.operation = a.operation
        WHERE a.id = (SELECT max(id) FROM audit)
        """)
    static let row = Statement(
        """
        SELECT \(columns) FROM audit a LEFT JOIN audit_detail d ON d.operation = a.operation
        WHERE a.operation = :operation
        """)
    /// The newest rows that say that a user was deleted. There is one, but somebody may have inserted
    /// others.
    static let deletions = Statement(
        """
        SELECT \(columns) FROM audit a LEFT JOIN audit_detail d ON d.operation = a.operation
        WHERE a.user_id = :user AND a.event = 'user.forgotten' ORDER BY a.at DESC, a.id DESC LIMIT 100
        """)

    /// The keys that are not binary, by their tables. No other read sees them: SQLite stores values of any
    /// type in any column, and sorts those of all other types before binary ones. MariaDB has none.
    static let strays = [
        "audit_writer": Statement("SELECT id AS stray FROM audit_writer WHERE id <= x'' ORDER BY id LIMIT 100"),
        "audit_checkpoint": Statement(
            "SELECT writer AS stray FROM audit_checkpoint WHERE writer <= x'' ORDER BY writer LIMIT 100"),
        "audit_link": Statement("SELECT writer AS stray FROM audit_link WHERE writer <= x'' ORDER BY writer LIMIT 100"),
        "audit_detail": Statement(
            "SELECT operation AS stray FROM audit_detail WHERE operation <= x'' ORDER BY operation LIMIT 100"),
    ]

    /// The columns that the digest covers, and then the words.
    private static let columns =
        (AuditRow.columns.map { "a.\($0)" } + ["d.salt", "d.note", "d.changes", "d.reason"]).joined(separator: ", ")
}
