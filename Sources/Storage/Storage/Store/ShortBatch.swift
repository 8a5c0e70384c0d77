import Relay

/// The short forms of one transaction (`ShortForm`).
///
/// Purpose: it collects what they read, lets each decide, and puts the same statements of several
/// scripts together. MariaDB executes such a group at once.
///
/// Invariant: it runs at most one short form for each subject. The others decline, and so does a form
/// with a row that is not genuine: the guarded script reports that row.
struct ShortBatch {
    private struct Member {
        let index: Int
        let form: ShortForm
        let cause: AuditCause
        /// The answer of the script; nil if it declines.
        var answer: [Rows]?
        var isRead = true
    }

    private var members: [Member] = []
    private let readings: DistinctSteps
    /// The writes of all members, in the order in which they run. The same statements are together.
    private var groups: [[ShortWrite]] = []

    init(_ entries: [Lane.Entry]) {
        var subjects: Set<[UInt8]> = []
        var steps: [BoundStatement] = []
        for (index, entry) in entries.enumerated() {
            guard let form = entry.script.short else { continue }
            var member = Member(index: index, form: form, cause: entry.submission.cause)
            member.isRead = subjects.isDisjoint(with: form.subjects)
            subjects.formUnion(form.subjects)
            if member.isRead {
                for rows in form.rows { steps.append(rows.reading(for: .writing)) }
                steps += form.reads
            }
            members.append(member)
        }
        for place in steps.indices { steps[place].mayMove = true }
        readings = DistinctSteps(steps)
    }

    var isEmpty: Bool { members.isEmpty }

    /// The statements that read what the forms decide by. The rows that they lock are read first, and
    /// of these the users' first.
    var steps: [BoundStatement] { readings.distinct }

    /// Lets each form decide, and returns the statements that write what they decided.
    mutating func decide(
        by found: some Collection<Rows>, _ authenticator: RowAuthenticator, _ personal: PersonalSealer?,
        _ audit: AuditBatch
    ) throws(SessionFailure) -> [BoundStatement] {
        var answers = readings.answers(Array(found)[...])[...]
        var places: [Int: Int] = [:]
        for place in members.indices where members[place].isRead {
            let form = members[place].form
            let rows = answers.prefix(form.rows.count)
            let reads = Array(answers.dropFirst(form.rows.count).prefix(form.reads.count))
            answers = answers.dropFirst(form.rows.count + form.reads.count)
            guard let checked = try Self.checked(form, rows, authenticator),
                let decided = Self.decision(
                    form,
                    ShortReading(rows: checked, reads: reads, authenticator: authenticator, personal: personal))
            else { continue }
            members[place].answer = decided.answer
            for write in decided.writes {
                var statement = audit.completed(write.statement, by: members[place].cause)
                // The words of audit rows belong to the statement that wrote the row.
                statement.isJoined = statement.words.isEmpty
                let group = places[statement.statement.index, default: groups.count]
                places[statement.statement.index] = group
                if group == groups.count { groups.append([]) }
                groups[group].append(ShortWrite(statement, mustMatch: write.mustMatch))
            }
        }
        return groups.flatMap { $0.map(\.statement) }
    }

    /// Returns the rows of a form; nil if one of them is not genuine.
    private static func checked(
        _ form: ShortForm, _ found: ArraySlice<Rows>, _ authenticator: RowAuthenticator
    ) throws(SessionFailure) -> [[CheckedRow]]? {
        var all: [[CheckedRow]] = []
        for (search, rows) in zip(form.rows, found) {
            var checked: [CheckedRow] = []
            for row in rows {
                let row = try CheckedRow(row, of: search.search.table)
                guard row.isGenuine(authenticator) else { return nil }
                checked.append(row)
            }
            all.append(checked)
        }
        return all
    }

    /// Returns what the form decides. A form that cannot read its rows declines, so that the guarded
    /// script reports the failure.
    private static func decision(_ form: ShortForm, _ reading: ShortReading) -> ShortWrites? {
        do throws(StoreFailure) {
            return try form.decide(reading)
        } catch {
            return nil
        }
    }

    /// Checks that the writes had their effect. The database tells only how many rows a group has
    /// matched; each of its writes matches one row at most.
    func check(_ results: some Collection<Rows>) throws(SessionFailure) {
        var results = Array(results)[...]
        for group in groups {
            let found = results.prefix(group.count)
            results = results.dropFirst(group.count)
            guard let first = group.first else { continue }
            guard isWritten(first, group.count, found) else {
                throw .conflict("a row has changed meanwhile, in: \(first.statement.statement.sql)")
            }
        }
    }

    private func isWritten(_ write: ShortWrite, _ count: Int, _ found: ArraySlice<Rows>) -> Bool {
        guard write.statement.statement.insertsAudit else {
            return !write.mustMatch || found.reduce(0) { $0 + $1.changes } == Int64(count)
        }
        let new = found.reduce(0) { total, rows in total + rows.count { (try? $0.isNull("repeated")) == true } }
        return new == count
    }

    /// Puts the answers into the places of their entries.
    func answer(_ answers: inout [Transaction.Answer]) {
        for member in members {
            answers[member.index] = member.answer.map { .ended(.success($0)) } ?? .declined
        }
    }
}
