/// The statements that write the audit.
///
/// Purpose: a statement declares that it inserts audit rows. The transaction then adds the writer,
/// the link, the actor and the words, and collects the rows that were written. `dev/check` refuses
/// an INSERT into the audit that is not declared.
extension Statement {
    /// The parameters that the transaction binds, in the order of the text.
    enum AuditParameter: Int, CaseIterable {
        case writer, link, actor, request, detail

        fileprivate var column: String { "\(self)" }
        fileprivate var parameter: String { ":audit_\(self)" }
    }

    /// Creates an INSERT into the audit from its text: the columns, then SELECT or VALUES, then
    /// `Audit.once`.
    ///
    /// A call may bind `note` and `changes` beside the parameters of the text. They become words of
    /// the rows (`AuditWords`).
    static func audit(_ sql: String) -> Statement {
        Statement(completed(sql), written: nil, insertsAudit: true)
    }

    private static func completed(_ sql: String) -> String {
        let opening = "INSERT INTO audit ("
        // Our own bug: statements are constants of this module, and `QueryPlanTests` runs each of them.
        guard sql.hasPrefix(opening), sql.contains(Audit.once) else {
            fatalError("an audit statement must begin with \(opening) and end with Audit.once: \(sql)")
        }
        let columns = AuditParameter.allCases.map { $0.column + ", " }.joined()
        let values = AuditParameter.allCases.map { $0.parameter + ", " }.joined()
        let rest = sql.dropFirst(opening.count)
        let keyword = rest.firstMatch(of: /\)\s+(SELECT |VALUES \()/)
        // Our own bug, like the above.
        guard let keyword else { fatalError("an audit statement has neither SELECT nor VALUES: \(sql)") }
        return opening + columns + rest[..<keyword.range.upperBound] + values + rest[keyword.range.upperBound...]
    }
}

extension BoundStatement {
    /// The most characters that `audit.actor` has room for. Names of accounts may be longer.
    private static let longestActor = 128

    /// Returns the statement with the values that the transaction knows.
    func audited(_ place: AuditPlace?, by cause: AuditCause, _ words: AuditWords, salt: [UInt8]) -> BoundStatement {
        var values = values
        values[Statement.AuditParameter.writer.rawValue] = place.map { .blob($0.writer) } ?? .null
        values[Statement.AuditParameter.link.rawValue] = place.map { .integer($0.sequence) } ?? .null
        let actor = cause.actor.map { String($0.unicodeScalars.prefix(Self.longestActor)) }
        values[Statement.AuditParameter.actor.rawValue] = .text(actor)
        values[Statement.AuditParameter.request.rawValue] = .text(cause.request)
        values[Statement.AuditParameter.detail.rawValue] = words.isEmpty ? .null : .blob(words.digest(salt: salt))
        return BoundStatement(statement, values: values, words: words, salt: salt)
    }
}

/// The link that the audit rows of a transaction belong to.
struct AuditPlace: Sendable, Equatable {
    let writer: [UInt8]
    let sequence: Int64
}

/// The cause of a script, for the audit rows that it writes.
struct AuditCause: Sendable, Equatable {
    var actor: String?
    var request: String?
    var reason: String?
}

/// The program that writes to a store, for the audit.
public struct AuditAuthor: Sendable {
    /// `relay` for a relay, `tool` for a command of `twoefay`.
    public var program: String
    public var host: String
    /// The actor of changes that no request caused.
    public var actor: String?
    /// The reason that an operator gave for the changes of this run.
    public var reason: String?

    public init(program: String, host: String, actor: String? = nil, reason: String? = nil) {
        self.program = program
        self.host = host
        self.actor = actor
        self.reason = reason
    }
}
