import Domain
import Relay
import World

extension Store: CodeFailureStore {
    public func countWrong(_ wrong: WrongCode, as operation: Operation) async throws(StoreFailure) -> Closed? {
        let consequence = Consequence(wrong, operation)
        let writes = [Step(Locks.hold, .id(wrong.user)), CodeFailures.audit(wrong, operation)]
        let change = Change("code", operation, writes + consequence.after, reads: consequence.reads)
        return try await run(
            Query(change: change) { rows throws(StoreFailure) in
                rows.happened ? try consequence.came(of: rows) : nil
            })
    }
}

/// Wrong codes, counted exactly: whoever counts repeats the failures that were read, so of two at once one reads again.
enum CodeFailures {
    /// The row that lets everything else happen.
    static func audit(_ wrong: WrongCode, _ operation: Operation) -> Step {
        let ids = places(wrong.factors.map { .id($0.id) })
        let kinds = wrong.factors.map(\.kind.rawValue)
        let failures = wrong.factors.reduce(0) { $0 + $1.failures }
        let waiting = wrong.factors.count { $0.state == .waiting }
        let challenge = SQLValue.id(wrong.challenge)
        return Step(
            auditWrong,
            values: [
                .id(operation), .moment(wrong.at), challenge, .text(kinds.count == 1 ? kinds[0] : nil),
                .id(wrong.user), .word(wrong.state),
            ] + ids + [.integer(Int64(kinds.count))] + ids + [.integer(Int64(failures))] + ids
                + [.integer(Int64(waiting)), challenge, challenge]
                + [.moment(wrong.at)])
    }

    static func counted(_ wrong: WrongCode, _ operation: Operation) -> [Step] {
        let ids = places(wrong.factors.map { .id($0.id) })
        return [
            Step(
                countFailure,
                values: [.moment(wrong.at), .id(operation), .id(wrong.user)] + ids + [.id(operation), .id(operation)])
        ]
    }

    /// - Parameter noted: under which the audit has that the user was locked.
    static func lock(_ wrong: WrongCode, _ operation: Operation, noted: OperationID) -> Step {
        Step(lockUser, .id(noted), .id(wrong.user), .integer(Int64(wrong.guesses)), .id(operation))
    }

    /// A right code forgets what was wrong before it. Part of a change that `operation` has put into the audit.
    static func forget(_ factor: FactorID, as operation: Operation) -> Step {
        Step(forgetWrong, .id(factor), .id(operation))
    }

    private static func places(_ ids: [SQLValue]) -> [SQLValue] {
        ids + Array(repeating: .null, count: WrongCode.mostFactors - ids.count)
    }
}

private let someFactors = "(" + Array(repeating: "?", count: WrongCode.mostFactors).joined(separator: ", ") + ")"

private let auditWrong = Statement(
    Audit.columns + """
         SELECT ?, ?, '\(WrongCode.event)', u.website_id, u.id, ?, NULL, ?, 'code' FROM user u WHERE u.id = ? AND u.state = ?
        AND (SELECT count(*) FROM factor f WHERE f.user_id = u.id AND f.id IN \(someFactors)) = ?
        AND (SELECT coalesce(sum(f.failures), 0) FROM factor f WHERE f.user_id = u.id AND f.id IN \(someFactors)) = ?
        AND (SELECT count(*) FROM factor f WHERE f.user_id = u.id AND f.id IN \(someFactors) AND f.state = 'waiting') = ?
        AND (? IS NULL OR EXISTS (SELECT 1 FROM challenge c WHERE c.id = ? AND c.user_id = u.id
        AND c.decided_at IS NULL AND c.expires_at > ?))
        """ + Audit.once)

private let countFailure = Statement(
    """
    UPDATE factor SET failures = failures + 1, failed_at = ?, operation = ?
    WHERE user_id = ? AND id IN \(someFactors) AND operation <> ?
    AND EXISTS (SELECT 1 FROM audit WHERE operation = ?)
    """)

private let lockUser = Statement(
    """
    UPDATE user SET state = 'locked', stopped_by = 'code', operation = ? WHERE id = ? AND state = 'active'
    AND EXISTS (SELECT 1 FROM factor f WHERE f.user_id = user.id AND f.failures >= ? AND f.operation = ?)
    """)

private let forgetWrong = Statement(
    """
    UPDATE factor SET failures = 0, failed_at = NULL
    WHERE id = ? AND failures > 0 AND EXISTS (SELECT 1 FROM audit WHERE operation = ?)
    """)
