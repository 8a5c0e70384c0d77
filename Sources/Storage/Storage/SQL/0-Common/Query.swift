import Domain
import Relay
import World

/// A script with the function that reads its results. It is written once for both engines and for
/// asynchronous and blocking callers.
public struct Query<Answer: Sendable>: Sendable {
    let script: Script
    let answer: @Sendable ([Rows]) throws(StoreFailure) -> Answer

    init(script: Script, answer: @escaping @Sendable ([Rows]) throws(StoreFailure) -> Answer) {
        self.script = script
        self.answer = answer
    }

    /// Whether it writes to the store.
    public var isChange: Bool { !script.isReadOnly }

    init(change: Change, answer: @escaping @Sendable ([Rows]) throws(StoreFailure) -> Answer) {
        self.init(script: change.script, answer: answer)
    }
}

/// A script that changes something under an operation. Its first read tells whether the guards
/// permitted the change.
struct Change {
    let script: Script

    init(
        _ name: StaticString, _ operation: Operation, rows: [SignedRows] = [], _ writes: [BoundStatement],
        reads: [BoundStatement] = [], reporting reported: Int? = nil
    ) {
        script = Script(
            name, operation: operation.id.bytes, mayHaveRun: operation.mayHaveRun, rows: rows, writes: writes,
            reads: [Audit.happened(operation: .id(operation))] + reads, reporting: reported)
    }
}

extension Store {
    public func run<Answer>(_ query: Query<Answer>) async throws(StoreFailure) -> Answer {
        try query.answer(try await run(query.script))
    }

    /// Runs a query for a program without a loop.
    public func runBlocking<Answer>(_ query: Query<Answer>) throws(StoreFailure) -> Answer {
        try query.answer(try runBlocking(query.script))
    }

    /// Runs several queries at the same time. Scripts that wait together are committed together.
    public func runBlocking<Answer>(_ queries: [Query<Answer>]) throws(StoreFailure) -> [Answer] {
        let rows = try runBlocking(queries.map(\.script))
        var answers: [Answer] = []
        for (query, rows) in zip(queries, rows) { answers.append(try query.answer(rows)) }
        return answers
    }

    /// Runs several queries in the same way. The answer is nil if a row that the query relies on is not
    /// genuine. All of them run; the first other failure is thrown.
    public func runBlockingIfGenuine<Answer>(_ queries: [Query<Answer>]) throws(StoreFailure) -> [Answer?] {
        var answers: [Answer?] = []
        for (query, result) in zip(queries, try answersBlocking(queries.map(\.script))) {
            if case .failure(.forged) = result {
                answers.append(nil)
            } else {
                answers.append(try query.answer(try result.get()))
            }
        }
        return answers
    }
}

/// The audit row, by which the operation of a change is found.
enum Audit {
    static let happened = Statement("SELECT at FROM audit WHERE operation = :operation")

    /// The result of `happened` for a change that a short form makes.
    static func happened(at moment: SQLValue) -> Rows { Rows(happenedColumns, [moment]) }

    private static let happenedColumns = ResultColumns(["at"], of: "a short form")

    /// The end of every statement that writes the audit: a repeated change leaves the existing row
    /// as it is. MariaDB returns an existing row, too, and `repeated` tells it from a new one.
    static let once = """
         /*M! ON DUPLICATE KEY UPDATE repeated = 1 */
        /*S! ON CONFLICT DO NOTHING */
        RETURNING \(AuditRow.list), repeated
        """
}

extension Audit {
    /// Audits challenges `c` that ended without an answer of their own. The audit row has the
    /// challenge's id as its operation, because a challenge ends once. A condition must follow.
    static let endedChallenges = """
        INSERT INTO audit (operation, at, event, website_id, user_id, challenge_id, outcome)
        SELECT c.id, :now, 'challenge.ended', c.website_id, c.user_id, c.id, c.reason FROM challenge c WHERE
        """
}

extension [Rows] {
    /// Whether `Audit.happened`, the first read, found the change.
    var happened: Bool { first?.isEmpty == false }

    /// Whether this caller has made the change, and neither an earlier request with the same operation
    /// nor one at the same time. The script must report a write that only the first one makes.
    func isOwn(at moment: Timestamp) throws(StoreFailure) -> Bool {
        guard let last, last.changes > 0 else { return false }
        return try happenedAt == moment
    }

    /// The time of the change; nil if it did not happen.
    var happenedAt: Timestamp? {
        get throws(StoreFailure) { try first?.first?.timestamp("at") }
    }
}

extension SQLValue {
    static func id<Thing>(_ id: Identifier<Thing>) -> SQLValue { .blob(id.bytes) }
    static func id<Thing>(_ id: Identifier<Thing>?) -> SQLValue { id.map { .blob($0.bytes) } ?? .null }
    static func id(_ operation: Operation) -> SQLValue { .blob(operation.id.bytes) }
    static func word<Word: RawRepresentable<String>>(_ word: Word) -> SQLValue { .text(word.rawValue) }
    static func word<Word: RawRepresentable<String>>(_ word: Word?) -> SQLValue { .text(word?.rawValue) }
}

extension Row {
    func id<Thing>(_ column: SQLName) throws(StoreFailure) -> Identifier<Thing> {
        guard let id = Identifier<Thing>(try blob(column)) else { throw .internal("column \(column) holds no id") }
        return id
    }

    func optionalID<Thing>(_ column: SQLName) throws(StoreFailure) -> Identifier<Thing>? {
        try isNull(column) ? nil : id(column)
    }

    func word<Word: RawRepresentable<String>>(_ column: SQLName) throws(StoreFailure) -> Word {
        let text = try text(column)
        guard let word = Word(rawValue: text) else {
            throw .internal("column \(column) holds the unknown word \(text)")
        }
        return word
    }

    func optionalWord<Word: RawRepresentable<String>>(_ column: SQLName) throws(StoreFailure) -> Word? {
        try isNull(column) ? nil : word(column)
    }
}
