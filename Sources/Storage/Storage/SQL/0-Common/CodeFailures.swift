import Domain
import Relay
import World

extension Store: CodeFailureStore {
    public func countWrong(_ wrong: WrongCode, as operation: Operation) async throws(StoreFailure) -> CountedCode? {
        let lock = wrong.after.isLocked ? CodeLock(wrong, operation) : nil
        let writes =
            [BoundStatement(Locks.hold, .id(wrong.user)), CodeFailures.audit(wrong, operation)]
            + CodeFailures.counted(wrong, operation)
        let change = Change(
            "code", operation, rows: lock?.rows ?? [], writes + (lock?.writes ?? []), reads: lock?.reads ?? [])
        return try await run(
            Query(change: change) { rows throws(StoreFailure) in
                guard rows.happened else { return nil }
                guard lock != nil, !rows[1].isEmpty else { return CountedCode(locked: false, open: []) }
                var open: [ChallengeID] = []
                for row in rows[2] { open.append(try row.id(0)) }
                return CountedCode(locked: true, open: open)
            })
    }

    public func reopenCodes(_ reopening: CodeReopening, as operation: Operation) async throws(StoreFailure) -> Bool {
        let mine: [SQLValue] = [.id(reopening.user), .id(operation)]
        let writes =
            [
                BoundStatement(Locks.hold, .id(reopening.user)),
                BoundStatement(markLocked, .id(operation), .id(reopening.user), .timestamp(reopening.lockedAt)),
            ] + Approvals.required(reopening.approved, of: reopening.user, as: operation) + [
                BoundStatement(
                    auditReopened,
                    values: [.id(operation), .timestamp(reopening.at), .id(reopening.approved.challenge)] + mine)
            ] + CodeFailures.cleared(of: reopening.user, as: operation)
        let rows: [SignedRows] = [.user(reopening.user).signed, .challenge(reopening.approved.challenge).signed]
        let change = Change("reopen codes", operation, rows: rows, writes)
        return try await run(Query(change: change) { rows in rows.happened })
    }
}

/// Statements that count wrong codes exactly. A change names the failure count that it read; of two
/// changes at once, one therefore changes nothing and reads again.
///
/// The user's row counts every wrong code once, and decides when codes are locked. Each factor's
/// row counts the wrong codes that could have been its own. That count determines which failures a
/// right code of the factor clears.
enum CodeFailures {
    /// Writes the audit row on which all other statements depend.
    static func audit(_ wrong: WrongCode, _ operation: Operation) -> BoundStatement {
        let ids = places(wrong.factors.map { .id($0.id) })
        let kinds = wrong.factors.map(\.kind.rawValue)
        let waiting = wrong.factors.count { $0.state == .waiting }
        let challenge = SQLValue.id(wrong.challenge)
        return BoundStatement(
            auditWrong,
            values: [
                .id(operation), .timestamp(wrong.at), challenge, .text(kinds.count == 1 ? kinds[0] : nil),
                .id(wrong.user), .word(wrong.state), .integer(Int64(wrong.before.failures)),
            ] + ids + [.integer(Int64(kinds.count))] + ids + [.integer(Int64(waiting)), challenge, challenge]
                + [.timestamp(wrong.at)])
    }

    static func counted(_ wrong: WrongCode, _ operation: Operation) -> [BoundStatement] {
        let ids = places(wrong.factors.map { .id($0.id) })
        let after = wrong.after
        return [
            BoundStatement(
                countFailure,
                values: [.timestamp(wrong.at), .id(operation), .id(wrong.user)] + ids + [
                    .id(operation), .id(operation),
                ]),
            BoundStatement(
                countOfUser, .integer(Int64(after.failures)), .timestamp(after.failedAt), .timestamp(after.lockedAt),
                .id(wrong.user), .integer(Int64(wrong.before.failures)), .id(operation)),
        ]
    }

    /// Clears the wrong codes that could only have been guesses at this factor. It is part of a
    /// change that `operation` has put into the audit.
    static func forget(_ factor: FactorID, of user: UserID, as operation: Operation) -> [BoundStatement] {
        [
            BoundStatement(clearOwnNoted, values: own(factor, of: user) + [.id(operation)]),
            BoundStatement(forgetNoted, .id(factor), .id(operation)),
        ]
    }

    /// Clears the same wrong codes, as part of a change that ends a challenge.
    static func forget(_ factor: FactorID, of user: UserID, endingBy mine: [SQLValue]) -> [BoundStatement] {
        [
            BoundStatement(clearOwnEnded, values: own(factor, of: user) + mine),
            BoundStatement(forgetEnded, values: [.id(factor)] + mine),
        ]
    }

    private static func own(_ factor: FactorID, of user: UserID) -> [SQLValue] {
        [.id(factor), .id(factor), .id(user)]
    }

    /// Keeps the wrong codes of the active factor of that kind when the factor is removed or gets
    /// another secret. They stay counted, and no right code clears them. The statement must precede
    /// the removal of the factor and follow the audit of the change.
    static func kept(_ kind: Factor, of user: UserID, as operation: Operation) -> BoundStatement {
        BoundStatement(keepNoted, .word(kind), .id(user), .id(operation))
    }

    /// Keeps the same wrong codes, in a change that has marked the user's row.
    static func keptOfMarked(_ kind: Factor, of user: UserID, as operation: Operation) -> BoundStatement {
        BoundStatement(keepMarked, .word(kind), .id(user), .id(operation))
    }

    /// Accepts codes again and sets the failure counts to zero. It is part of a change that
    /// `operation` has put into the audit.
    static func cleared(of user: UserID, as operation: Operation) -> [BoundStatement] {
        [BoundStatement(clearUser, .id(user), .id(operation)), BoundStatement(clearFactors, .id(user), .id(operation))]
    }

    private static func places(_ ids: [SQLValue]) -> [SQLValue] {
        ids + Array(repeating: .null, count: WrongCode.mostFactors - ids.count)
    }
}

private let someFactors = "(" + Array(repeating: "?", count: WrongCode.mostFactors).joined(separator: ", ") + ")"

private let auditWrong = Statement(
    Audit.columns + """
         SELECT ?, ?, '\(WrongCode.event)', u.website_id, u.id, ?, NULL, ?, 'code' FROM user u WHERE u.id = ? AND u.state = ?
        AND u.code_failures = ? AND u.codes_locked_at IS NULL
        AND (SELECT count(*) FROM factor f WHERE f.user_id = u.id AND f.id IN \(someFactors)) = ?
        AND (SELECT count(*) FROM factor f WHERE f.user_id = u.id AND f.id IN \(someFactors) AND f.state = 'waiting') = ?
        AND (? IS NULL OR EXISTS (SELECT 1 FROM challenge c WHERE c.id = ? AND c.user_id = u.id
        AND c.decided_at IS NULL AND c.expires_at > ?))
        """ + Audit.once)

private let noted = " EXISTS (SELECT 1 FROM audit WHERE operation = ?)"

private let countFailure = Statement(
    """
    UPDATE factor SET failures = failures + 1, failed_at = ?, operation = ?
    WHERE user_id = ? AND id IN \(someFactors) AND operation <> ? AND
    """ + noted)

private let countOfUser = Statement(
    """
    UPDATE user SET code_failures = ?, code_failed_at = ?, codes_locked_at = ?
    WHERE id = ? AND code_failures = ? AND codes_locked_at IS NULL AND
    """ + noted)

/// Reduces the user's count by the factor's own wrong codes. Some of these may also count for other
/// factors or for removed ones. The remaining count is therefore never less than the count of any
/// other factor or the kept count.
private let clearOwn = """
    UPDATE user SET code_failures = /*M! greatest( */ /*S! max( */ code_failures_kept,
    code_failures - coalesce((SELECT f.failures FROM factor f WHERE f.id = ?), 0),
    (SELECT coalesce(max(o.failures), 0) FROM factor o WHERE o.user_id = user.id AND o.id <> ?))
    WHERE id = ? AND code_failures > 0 AND
    """
private let clearOwnNoted = Statement(clearOwn + noted)
private let clearOwnEnded = Statement(clearOwn + ChallengeEnds.ended)

private let forgetWrong = "UPDATE factor SET failures = 0, failed_at = NULL WHERE id = ? AND failures > 0 AND"
private let forgetNoted = Statement(forgetWrong + noted)
private let forgetEnded = Statement(forgetWrong + ChallengeEnds.ended)

private let keep = """
    UPDATE user SET code_failures_kept = /*M! least( */ /*S! min( */ code_failures, code_failures_kept +
    (SELECT coalesce(sum(f.failures), 0) FROM factor f WHERE f.user_id = user.id AND f.kind = ? AND f.state = 'active'))
    WHERE id = ? AND code_failures > 0 AND
    """
private let keepNoted = Statement(keep + noted)
private let keepMarked = Statement(keep + " operation = ?")

private let clearUser = Statement(
    """
    UPDATE user SET code_failures = 0, code_failures_kept = 0, code_failed_at = NULL, codes_locked_at = NULL
    WHERE id = ? AND
    """ + noted)
private let clearFactors = Statement(
    "UPDATE factor SET failures = 0, failed_at = NULL WHERE user_id = ? AND failures > 0 AND" + noted)

/// An approval is valid only for the lock that existed when the user was asked.
private let markLocked = Statement(
    "UPDATE user SET operation = ? WHERE id = ? AND state = 'active' AND codes_locked_at = ?")

private let auditReopened = Statement(
    Audit.columns + """
         SELECT ?, ?, 'codes.unlocked', u.website_id, u.id, c.id, c.device_id, NULL, c.proof
        FROM challenge c JOIN user u ON u.id = c.user_id WHERE c.id = ? AND u.id = ? AND u.operation = ?
        """ + Audit.once)
