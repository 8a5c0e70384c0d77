/// The text of a statement, parsed once when the statement is declared.
///
/// Purpose: a statement names its parameters, as in `WHERE id = :user`, so that text and values can
/// be read and changed without counting. The engines know other parameters: MariaDB only `?`, and
/// SQLite also `?1`, `?2`. This type makes each engine's text from the text with names.
///
/// Invariant: the values of a statement have the order in which the names first occur in its text.
/// Each engine gets the values that its text has parameters for (`slots`). A name may occur several
/// times, and may occur only in the part of one engine.
///
/// Failures: a parameter without a name throws. A parameter that the scanner does not see as the
/// engine does is an error when a connection prepares the statement.
struct StatementText: Sendable {
    /// The text for one engine.
    struct Dialected: Sendable {
        let sql: String
        /// The values of the engine's parameters, as indices into the values of the statement.
        let slots: [Int]
        /// The number of values of the statement.
        let values: Int
    }

    /// The names of the parameters, in the order of the values.
    let names: SQLNames
    let mariadb: Dialected
    let sqlite: Dialected

    init(_ sql: String) throws(UnnamedParameter) {
        var names = SQLNames()
        var mariadb = Builder(.mariadb)
        var sqlite = Builder(.sqlite)
        /// The letter of the engine whose part the scanner is in; nil outside such parts.
        var part: UInt8?
        func append(_ change: (inout Builder) -> Void) {
            if part != UInt8(ascii: "S") { change(&mariadb) }
            if part != UInt8(ascii: "M") { change(&sqlite) }
        }
        var scanner = SQLScanner(sql)
        while let piece = scanner.next(insideOwn: part != nil) {
            switch piece {
            case .ownBegins(let letter):
                append { $0.append(" ".utf8) }
                part = letter
            case .ownEnds:
                part = nil
                append { $0.append(" ".utf8) }
            case .parameter(let parameter):
                let name = parameter.dropFirst()
                let index = names.firstIndex(of: name) ?? names.count
                if index == names.count { names.append(name) }
                append { $0.append(parameter: index) }
            case .placeholder: throw UnnamedParameter()
            case .bytes(let bytes), .comment(let bytes): append { $0.append(bytes) }
            case .semicolon: append { $0.append(";".utf8) }
            }
        }
        self.names = names
        self.mariadb = mariadb.text(names)
        self.sqlite = sqlite.text(names)
    }

    private struct Builder {
        private let dialect: Dialect
        private var sql: [UInt8] = []
        private var slots: [Int] = []

        init(_ dialect: Dialect) { self.dialect = dialect }

        mutating func append(_ bytes: some Collection<UInt8>) { sql.append(contentsOf: bytes) }

        /// Appends a parameter. SQLite gets a value once, even if its text uses the value twice.
        mutating func append(parameter index: Int) {
            let known = dialect == .sqlite ? slots.firstIndex(of: index) : nil
            let slot = known ?? slots.count
            if known == nil { slots.append(index) }
            append(dialect == .sqlite ? "?\(slot + 1)".utf8 : "?".utf8)
        }

        func text(_ names: SQLNames) -> Dialected {
            Dialected(sql: String(decoding: sql, as: UTF8.self), slots: slots, values: names.count)
        }
    }
}

/// The error for a statement with `?`, which has no name that a call could bind a value to.
struct UnnamedParameter: Error {}
