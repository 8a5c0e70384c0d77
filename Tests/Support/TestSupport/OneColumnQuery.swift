import Storage

extension BoundStatement {
    /// Returns a query for the rows of another query of one column. Its column is `value`, whatever
    /// the other query computes.
    package static func value(of sql: String) -> BoundStatement {
        Statement("WITH answer (value) AS (\(sql)) SELECT value FROM answer")()
    }
}
