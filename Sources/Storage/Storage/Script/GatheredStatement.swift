import Synchronization

/// A read that can serve several requests in one execution.
///
/// Purpose: the text has the condition of one request in braces: `WHERE {id = :challenge AND user_id =
/// :user}`. The form for four requests has this condition four times, joined by OR. MariaDB plans
/// each execution anew and opens its tables, which costs more than a few rows do.
///
/// Invariant: the condition compares at least one column with a parameter, as in `id = :challenge`. A
/// form returns these columns at the end of its rows, so that each row tells which request it
/// answers. The statement has neither LIMIT nor GROUP BY, and uses the parameters of the condition
/// nowhere else.
///
/// Failures: a condition without such a comparison ends the program, because it is an error in the
/// program itself. `GatheredReadsTests.swift` tests it.
final class GatheredStatement: Sendable {
    /// The largest number of requests in one execution. A form is prepared for each power of two.
    static let most = 16

    private let text: GatheredText
    /// The places of the values that the condition compares with columns.
    private let keys: [Int]
    /// The places of the values that all requests of an execution have in common.
    private let commons: [Int]
    private let names: SQLNames
    private let forms = Mutex<[Int: GatheredForm]>([:])

    init(_ text: GatheredText, _ names: SQLNames) {
        self.text = text
        self.names = names
        keys = text.keys.compactMap { names.firstIndex(of: $0.name.utf8) }
        let own = text.ownNames
        commons = (0..<names.count).filter { !own.contains(names[$0]) }
    }

    /// Returns the values that tell the rows of two requests apart.
    func key(of values: [SQLValue]) -> [SQLValue] { keys.map { values[$0] } }

    func common(of values: [SQLValue]) -> [SQLValue] { commons.map { values[$0] } }

    /// Returns the smallest form for a number of requests.
    func form(for count: Int) -> GatheredForm {
        var size = 2
        while size < count { size *= 2 }
        return forms.withLock { forms in
            if let known = forms[size] { return known }
            let form = GatheredForm(text, names, count: size)
            forms[size] = form
            return form
        }
    }
}

/// The form of a read for a number of requests.
struct GatheredForm: Sendable {
    let statement: Statement
    private let count: Int
    /// The request and the parameter that each value of the form comes from.
    private let sources: [(request: Int, value: Int)]
    private let keys: Int

    fileprivate init(_ text: GatheredText, _ names: SQLNames, count: Int) {
        statement = Statement(text.form(for: count))
        self.count = count
        keys = text.keys.count
        var numbers: [String: (request: Int, value: Int)] = [:]
        for value in 0..<names.count {
            numbers[names[value]] = (0, value)
            for request in 0..<count { numbers[GatheredText.name(names[value], of: request)] = (request, value) }
        }
        let own = statement.text.names
        sources = (0..<own.count).compactMap { numbers[own[$0]] }
    }

    /// Binds the values of the requests. A form for more requests repeats the last one.
    func bound(_ requests: [[SQLValue]]) -> BoundStatement {
        BoundStatement(statement, values: sources.map { requests[min($0.request, requests.count - 1)][$0.value] })
    }

    /// Divides a result among the requests.
    ///
    /// - Parameter requests: for each request the values that tell its rows apart.
    func parts(of rows: Rows, _ requests: [[SQLValue]]) throws(SessionFailure) -> [Rows] {
        let width = rows.columns.count
        var parts = [[SQLValue]](repeating: [], count: requests.count)
        for start in stride(from: 0, to: rows.values.count, by: width) {
            let row = rows.values[start..<(start + width)]
            let key = row.suffix(keys)
            guard let request = requests.firstIndex(where: { $0.elementsEqual(key) }) else {
                throw .statement("a row answers no request, in: \(statement.sql)")
            }
            parts[request] += row
        }
        return parts.map { Rows(rows.columns, $0) }
    }
}

/// The text of a read with a condition in braces.
struct GatheredText: Sendable {
    /// The columns that the condition compares, and the names of their parameters.
    let keys: [(column: String, name: String)]
    /// The text for one request.
    let plain: String
    /// The names of the parameters of the condition.
    let ownNames: Set<String>
    private let condition: String
    /// The text before the condition, with the columns of `keys`.
    private let head: String
    private let tail: String
    /// Whether the condition is one comparison, and nothing else.
    private let isOneComparison: Bool

    /// Reads the text of a statement; nil if it has no braces.
    init?(_ marked: String) {
        guard let start = Self.place(of: "{", in: marked), let end = Self.place(of: "}", in: marked) else { return nil }
        let (before, after) = (marked[..<start], marked[marked.index(after: end)...])
        condition = String(marked[marked.index(after: start)..<end])
        tail = String(after)
        plain = before + condition + after
        let terms = condition.split(separator: " AND ")
        keys = terms.compactMap { term in
            term.wholeMatch(of: /\s*([a-z_.]+) = :([A-Za-z_]+)\s*/).map { (String($0.1), String($0.2)) }
        }
        isOneComparison = keys.count == 1 && terms.count == 1
        ownNames = Self.names(in: condition)
        guard !keys.isEmpty, let from = Self.from(in: before), ownNames.isDisjoint(with: Self.names(in: before + after))
        else {
            // Our own bug, and found at the first use: the text is a constant of the source.
            fatalError(
                "a condition in braces has no FROM before it, no column, or a parameter that others use: \(marked)")
        }
        let columns = keys.enumerated().map { ", \($1.column) AS gathered_\($0)" }
        let select = String(before[..<from]) + columns.joined() + String(before[from...])
        head = Self.startsWithItsTable(before[from...], keys) ? "SELECT STRAIGHT_JOIN" + select.dropFirst(6) : select
    }

    /// Whether the first table is that of the condition. A form then joins the tables in the order of
    /// the text. With old statistics MariaDB may take a table for empty, and would begin with it.
    private static func startsWithItsTable(_ from: Substring, _ keys: [(column: String, name: String)]) -> Bool {
        let words = from.split(whereSeparator: \.isWhitespace)
        return words.count > 3 && words.contains("JOIN") && keys[0].column.hasPrefix("\(words[2]).")
    }

    /// Returns the names of the parameters of a text.
    private static func names(in text: some StringProtocol) -> Set<String> {
        var names: Set<String> = []
        var scanner = SQLScanner(String(text))
        while let piece = scanner.next(insideOwn: false) {
            if case .parameter(let name) = piece { names.insert(String(decoding: name.dropFirst(), as: UTF8.self)) }
        }
        return names
    }

    /// Returns the place of a brace outside quoted text, which may be JSON.
    private static func place(of brace: Character, in text: String) -> String.Index? {
        var isQuoted = false
        return text.indices.first { index in
            if text[index] == "'" { isQuoted.toggle() }
            return !isQuoted && text[index] == brace
        }
    }

    /// Returns the place of the FROM that belongs to the SELECT itself, and not to one in parentheses.
    private static func from(in text: Substring) -> Substring.Index? {
        var depth = 0
        return text.indices.first { index in
            if text[index] == "(" { depth += 1 }
            if text[index] == ")" { depth -= 1 }
            return depth == 0 && text[index].isWhitespace && text[index...].dropFirst().hasPrefix("FROM ")
        }
    }

    /// The name of a parameter of one of several requests.
    static func name(_ name: String, of request: Int) -> String { "\(name)_of\(request)" }

    /// Returns the text of the form for a number of requests.
    func form(for count: Int) -> String {
        // MariaDB sorts the values of an IN, and compares a row with all terms of an OR.
        let all =
            isOneComparison
            ? "\(keys[0].column) IN (\((0..<count).map { ":\(Self.name(keys[0].name, of: $0))" }.joined(separator: ", ")))"
            : (0..<count).map { request in "(\(renamed { Self.name($0, of: request) }))" }.joined(separator: " OR ")
        return "\(head)(\(all))\(tail)"
    }

    /// Returns the condition with other names of its parameters.
    private func renamed(_ change: (String) -> String) -> String {
        var text: [UInt8] = []
        var scanner = SQLScanner(condition)
        while let piece = scanner.next(insideOwn: false) {
            switch piece {
            case .parameter(let name): text += ":\(change(String(decoding: name.dropFirst(), as: UTF8.self)))".utf8
            case .bytes(let bytes), .comment(let bytes), .placeholder(let bytes): text += bytes
            case .semicolon, .ownBegins, .ownEnds: break
            }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
