import Domain
import Relay
import World

/// A script and how its rows are read: what one verb wants of the store, written once for both engines and for both
/// ways of running it.
public struct Query<Answer: Sendable>: Sendable {
    let script: Script
    let answer: @Sendable ([Rows]) throws(StoreFailure) -> Answer

    init(script: Script, answer: @escaping @Sendable ([Rows]) throws(StoreFailure) -> Answer) {
        self.script = script
        self.answer = answer
    }

    init(change: Change, answer: @escaping @Sendable ([Rows]) throws(StoreFailure) -> Answer) {
        self.init(script: change.script, answer: answer)
    }
}

/// A script that changes something under an operation. Its first read tells whether the guards let it happen.
struct Change {
    let script: Script

    init(
        _ name: StaticString, _ operation: Operation, rows: [SignedRows] = [], _ writes: [BoundStatement],
        reads: [BoundStatement] = []
    ) {
        script = Script(
            name, operation: operation.id.bytes, mayHaveRun: operation.mayHaveRun, rows: rows, writes: writes,
            reads: [BoundStatement(Audit.happened, .id(operation))] + reads)
    }
}

extension Store {
    public func run<Answer>(_ query: Query<Answer>) async throws(StoreFailure) -> Answer {
        try query.answer(try await run(query.script))
    }

    /// For a program without a loop.
    public func runBlocking<Answer>(_ query: Query<Answer>) throws(StoreFailure) -> Answer {
        try query.answer(try runBlocking(query.script))
    }

    /// Many at the same time: what waits together is committed together.
    public func runBlocking<Answer>(_ queries: [Query<Answer>]) throws(StoreFailure) -> [Answer] {
        let rows = try runBlocking(queries.map(\.script))
        var answers: [Answer] = []
        for (query, rows) in zip(queries, rows) { answers.append(try query.answer(rows)) }
        return answers
    }
}

/// The audit row: what makes a change known by its operation.
enum Audit {
    static let happened = Statement("SELECT at FROM audit WHERE operation = ?")

    /// The end of every statement that writes the audit: a change that comes again leaves the row as it is.
    static let once = """
         /*M! ON DUPLICATE KEY UPDATE operation = audit.operation */
        /*S! ON CONFLICT DO NOTHING */
        """

    static let columns = """
        INSERT INTO audit
        (operation, at, event, website_id, user_id, challenge_id, device_id, outcome, proof)
        """
}

extension Audit {
    /// Of challenges that ended with something else than an answer of their own. Each has a row of its own under its own
    /// id, for it ends once.
    static let ended =
        columns + " SELECT c.id, ?, 'challenge.ended', c.website_id, c.user_id, c.id, NULL, c.reason, NULL "
        + "FROM challenge c WHERE "
}

extension [Rows] {
    /// The answer of `Audit.happened`, which comes first.
    var happened: Bool { first?.isEmpty == false }

    /// When it happened; nil if it did not.
    var happenedAt: Timestamp? {
        get throws(StoreFailure) { try first?.first?.timestamp(0) }
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
    func id<Thing>(_ column: Int) throws(StoreFailure) -> Identifier<Thing> {
        guard let id = Identifier<Thing>(try blob(column)) else { throw .internal("column \(column) holds no id") }
        return id
    }

    func optionalID<Thing>(_ column: Int) throws(StoreFailure) -> Identifier<Thing>? {
        try isNull(column) ? nil : id(column)
    }

    func word<Word: RawRepresentable<String>>(_ column: Int) throws(StoreFailure) -> Word {
        let text = try text(column)
        guard let word = Word(rawValue: text) else {
            throw .internal("column \(column) holds the unknown word \(text)")
        }
        return word
    }

    func optionalWord<Word: RawRepresentable<String>>(_ column: Int) throws(StoreFailure) -> Word? {
        try isNull(column) ? nil : word(column)
    }
}
