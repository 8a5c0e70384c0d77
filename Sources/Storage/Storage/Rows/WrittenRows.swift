/// Determines which rows of a signed table a statement wrote under a key that had no row before.
///
/// A check that finds no row locks nothing in MariaDB. Somebody else may therefore insert a row
/// with that key before the statement runs. The statement then keeps that row's values, and only
/// its result distinguishes the two cases. A secret marker in the row would not be safe: somebody
/// with access to the database could read it and copy it.
struct WrittenRows: Sendable {
    let table: SignedTable
    /// Whether the statement is an UPDATE that gives one row another key, the first of its values.
    /// If false, it is an INSERT that returns the key and the MAC of its rows. The MAC of an
    /// inserted row is NULL. MariaDB also returns an existing row, always with a MAC, because the
    /// statement sets an empty one if there is none. SQLite does not return an existing row.
    let isMove: Bool

    /// Returns the keys under which this statement wrote a row.
    func keys(of step: BoundStatement, _ answer: Rows) throws(SessionFailure) -> [[SQLValue]] {
        if isMove { return answer.changes > 0 ? [Array(step.values.prefix(table.key.count))] : [] }
        var keys: [[SQLValue]] = []
        for row in answer {
            do {
                guard try row.isNull("mac") else { continue }
                keys.append(try table.key.indices.map { try row.value(at: $0) })
            } catch {
                throw .statement("\(error) in: \(step.statement.sql)")
            }
        }
        return keys
    }
}

extension Statement {
    /// Creates an INSERT into a signed table from its text without the end.
    ///
    /// - Parameter once: if true, an existing row keeps its values; if false, an existing row makes
    ///   the statement fail.
    convenience init(into table: SignedTable, once: Bool = false, _ sql: String) {
        let mark = "ON DUPLICATE KEY UPDATE mac = coalesce(\(table.name).mac, x'')"
        let end = once ? "/*M! \(mark) */ /*S! ON CONFLICT DO NOTHING */" : ""
        // SQLite 3.40 evaluates `mac IS NULL` as false here, so the statement returns the value
        // itself.
        let answer = "RETURNING \((table.key + ["mac"]).joined(separator: ", "))"
        self.init("\(sql) \(end) \(answer)", written: WrittenRows(table: table, isMove: false), since: table.since)
    }

    /// Creates an UPDATE that gives one row of a signed table another key, the first of its values.
    convenience init(moving table: SignedTable, _ sql: String) {
        self.init(sql, written: WrittenRows(table: table, isMove: true))
    }
}
