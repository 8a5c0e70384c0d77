import Synchronization

/// A fixed SQL text with a name for every value: `WHERE id = :user`. Each connection prepares it
/// once. It is created once, as a constant beside the function that uses it, and compared by
/// identity.
///
/// A call of the statement binds its values: `markUser(user: .id(user), operation: .id(operation))`.
/// The labels are the names of the parameters, in any order; the order of the text is fastest. A
/// wrong label ends the program, because it is an error in the program itself.
///
/// Only MariaDB reads text inside `/*M! … */`, and only SQLite reads text inside `/*S! … */`. A
/// condition in braces, `WHERE {id = :user}`, is that of one request: see `GatheredStatement`.
@dynamicCallable
public final class Statement: Sendable {
    public let sql: String
    let text: StatementText
    /// A number that is unique in this process. Connections use it as the index of their prepared
    /// statement.
    let index: Int
    /// Determines which rows of a signed table the statement has written; nil if the check before
    /// it can find all its rows.
    let written: WrittenRows?
    /// Whether the statement inserts audit rows (`Statement.audit`).
    let insertsAudit: Bool
    /// The version of the tables that the statement needs. On older ones it is left out of its
    /// script: it changes nothing and finds nothing.
    let since: Int64
    /// The tables whose rows the result has, with what a check needs of them (`CheckedTable`).
    let checks: [CheckedTable]
    /// Its forms for several requests; nil if it has no condition in braces.
    let gathered: GatheredStatement?

    private static let made = Atomic<Int>(0)

    public convenience init(_ sql: String, since: Int64 = 0) { self.init(sql, written: nil, since: since) }

    init(
        _ marked: String, written: WrittenRows?, insertsAudit: Bool = false, since: Int64 = 0,
        checks: [CheckedTable] = []
    ) {
        let several = GatheredText(marked)
        sql = several?.plain ?? marked
        self.since = since
        self.checks = checks
        self.written = written
        self.insertsAudit = insertsAudit
        precondition(insertsAudit || !sql.contains("RETURNING \(AuditRow.list)"), "use Statement.audit: \(sql)")
        do throws(UnnamedParameter) {
            text = try StatementText(sql)
        } catch {
            // Our own bug, and found at the first use: the text is a constant of the source.
            fatalError("a parameter has no name, write :name instead of ? in: \(sql)")
        }
        gathered = several.map { [text] in GatheredStatement($0, text.names) }
        index = Self.made.wrappingAdd(1, ordering: .relaxed).oldValue
    }

    public func dynamicallyCall(withKeywordArguments values: KeyValuePairs<SQLName, SQLValue>) -> BoundStatement {
        do throws(BindingFailure) {
            guard !insertsAudit else { return try boundAudit(values, [:]) }
            return BoundStatement(self, values: try ordered(values))
        } catch {
            // Our own bug: the labels are literals in the source, whatever the values are.
            fatalError("\(error.message) in: \(sql)")
        }
    }

    /// Binds values and lists. The elements of the list `id` are the values of the parameters
    /// `:id1`, `:id2` and so on; parameters beyond the end of the list are NULL. The caller limits
    /// the list to the number of its parameters.
    func bound(
        _ values: KeyValuePairs<SQLName, SQLValue>, lists: KeyValuePairs<SQLName, [SQLValue]>
    ) -> BoundStatement {
        do throws(BindingFailure) {
            guard !insertsAudit else { return try boundAudit(values, lists) }
            return BoundStatement(self, values: try sorted(values, lists))
        } catch {
            // Our own bug: a wrong label, or a caller that did not limit its list. To cut the list
            // off would silently change fewer rows.
            fatalError("\(error.message) in: \(sql)")
        }
    }

    /// Returns the values in the order of the statement's parameters.
    func ordered(_ values: KeyValuePairs<SQLName, SQLValue>) throws(BindingFailure) -> [SQLValue] {
        guard text.names.equals(values) else { return try sorted(values) }
        return values.map(\.value)
    }

    /// Binds an audit statement. The transaction replaces the values of its first parameters.
    private func boundAudit(
        _ values: KeyValuePairs<SQLName, SQLValue>, _ lists: KeyValuePairs<SQLName, [SQLValue]>
    ) throws(BindingFailure) -> BoundStatement {
        var own: [(key: SQLName, value: SQLValue)] = []
        var words = AuditWords()
        for (name, value) in values {
            switch (name.description, value) {
            case ("note", .text(let text)): words.note = text
            case ("changes", .text(let text)): words.changes = text
            case ("note", .null), ("changes", .null): break
            default: own.append((name, value))
            }
        }
        return BoundStatement(
            self, values: try sorted(own, lists, leading: AuditParameter.allCases.count), words: words)
    }

    func sorted(
        _ values: KeyValuePairs<SQLName, SQLValue>, _ lists: KeyValuePairs<SQLName, [SQLValue]> = [:]
    ) throws(BindingFailure) -> [SQLValue] {
        try sorted(values, lists, leading: 0)
    }

    /// - Parameter leading: the number of first parameters that the call does not bind.
    private func sorted(
        _ values: some Sequence<(key: SQLName, value: SQLValue)>, _ lists: KeyValuePairs<SQLName, [SQLValue]>,
        leading: Int
    ) throws(BindingFailure) -> [SQLValue] {
        let names = text.names
        var sorted: [SQLValue?] = Array(repeating: nil, count: names.count)
        for index in 0..<leading { sorted[index] = .null }
        for (name, value) in values {
            guard let index = names.firstIndex(of: name) else { throw BindingFailure("there is no parameter :\(name)") }
            guard sorted[index] == nil else { throw BindingFailure("the parameter :\(name) is given twice") }
            sorted[index] = value
        }
        for (name, list) in lists {
            let places = names.numbered(name)
            guard list.count <= places.count else {
                throw BindingFailure("the list \(name) has \(list.count) values for \(places.count) parameters")
            }
            for (number, index) in places.enumerated() { sorted[index] = number < list.count ? list[number] : .null }
        }
        if let missing = sorted.firstIndex(of: nil) {
            throw BindingFailure("the parameter :\(names[missing]) has no value")
        }
        return sorted.compactMap(\.self)
    }
}

/// The reason why values do not fit a statement's parameters.
struct BindingFailure: Error, Equatable {
    let message: String

    init(_ message: String) { self.message = message }
}

/// A statement with its values, in the order of the statement's parameters.
public struct BoundStatement: Sendable {
    public let statement: Statement
    public let values: [SQLValue]
    /// The words of the audit rows that the statement inserts.
    let words: AuditWords
    /// The salt of the digest of these words.
    let salt: [UInt8]
    /// Whether the session may execute the statement together with its neighbours that are the same
    /// statement. The first result of such a run is that of all of them: their rows, or the number of
    /// rows that they matched.
    var isJoined = false
    /// Whether a transaction that writes may run it before or after its neighbours that may move, too.
    /// Among them, the statements that can be gathered run first.
    var mayMove = false

    init(
        _ statement: Statement, values: [SQLValue], words: AuditWords = AuditWords(), salt: [UInt8] = []
    ) {
        self.statement = statement
        self.values = values
        self.words = words
        self.salt = salt
    }
}
