/// Tells which rows of a signed table a statement has written under a key that had no row before.
///
/// A check that finds no row locks nothing in MariaDB, so somebody else may write a row under that
/// key until the statement runs. The statement then leaves that row's values alone, and only its own
/// answer tells the two cases apart. The answer needs no secret marker: somebody with access to the
/// database could read a marker there and copy it.
struct WrittenRows: Sendable {
    let table: SignedTable
    /// The statement is an UPDATE that gives one row another key, the first of its values. If false,
    /// it is an INSERT. That returns the key and the MAC of each row that it inserted or found. An
    /// inserted row has no MAC. A row that was found has one: if it had none, the statement sets an
    /// empty one.
    let isMove: Bool

    /// The keys under which this step has written a row.
    func keys(of step: BoundStatement, _ answer: Rows) throws(SessionFailure) -> [[SQLValue]] {
        if isMove { return answer.changes > 0 ? [Array(step.values.prefix(table.key.count))] : [] }
        var keys: [[SQLValue]] = []
        for row in answer {
            do {
                guard try row.isNull(table.key.count) else { continue }
                keys.append(try table.key.indices.map { try row.value($0) })
            } catch {
                throw .statement("\(error) in: \(step.statement.sql)")
            }
        }
        return keys
    }
}

extension Statement {
    /// An INSERT into a signed table, without its end.
    ///
    /// - Parameter once: if true, an existing row keeps its values; if false, an existing row makes
    ///   the statement fail.
    convenience init(into table: SignedTable, once: Bool = false, _ sql: String) {
        let mark = "ON DUPLICATE KEY UPDATE mac = coalesce(\(table.name).mac, x'')"
        let end = once ? " /*M! \(mark) */ /*S! ON CONFLICT DO NOTHING */" : ""
        // SQLite 3.40 takes `mac IS NULL` for false here, so the value itself is returned.
        let answer = " RETURNING \((table.key + ["mac"]).joined(separator: ", "))"
        self.init(sql + end + answer, written: WrittenRows(table: table, isMove: false))
    }

    /// An UPDATE that gives one row of a signed table another key, its first value.
    convenience init(moving table: SignedTable, _ sql: String) {
        self.init(sql, written: WrittenRows(table: table, isMove: true))
    }
}
