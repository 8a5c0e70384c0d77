import Domain
import Relay
import World

extension Store: CodeStore {
    public func codes(
        for challenge: ChallengeID, of user: UserID, recovery: [UInt8]?, at now: Timestamp, as operation: OperationID
    ) async throws(StoreFailure) -> OpenCodes {
        // A code is compared with the rows that are read here, so they must be genuine here. The
        // check in the script that ends the challenge would be too late.
        let relied: [SignedRows] =
            [.user(user), .activeFactors(of: user), .sentCodes(for: challenge, at: now)]
            + (recovery.map { [.recoveryCode($0, of: user)] } ?? [])
        let script = Script(
            "codes", rows: relied,
            reads: [
                BoundStatement(activeOfUser, .id(user)), BoundStatement(sentFor, .id(challenge), .timestamp(now)),
                BoundStatement(unusedRecovery, .id(user), .blob(recovery)),
                BoundStatement(Audit.happened, .id(operation)),
                BoundStatement(lockoutOfUser, .id(user)),
            ])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                var factors: [CodeFactor] = []
                for row in rows[0] { factors.append(try CodeFactors.read(row)) }
                var sent: [FactorID: [Int64]] = [:]
                for row in rows[1] { sent[try row.id(0), default: []].append(try row.integer(1)) }
                return OpenCodes(
                    factors: factors, sent: sent, isRecoveryCode: !rows[2].isEmpty,
                    lockout: try rows[4].first?.codeLockout() ?? .none, isCounted: !rows[3].isEmpty)
            })
    }
}

extension CodeLockout {
    /// The columns of the table `user`, or of an alias such as `u.`.
    static func columns(_ alias: String = "") -> String {
        ["code_failures", "code_failed_at", "codes_locked_at"].map { alias + $0 }.joined(separator: ", ")
    }
}

extension Row {
    /// Reads `CodeLockout.columns`.
    func codeLockout() throws(StoreFailure) -> CodeLockout {
        CodeLockout(
            failures: Int(try integer("code_failures")), failedAt: try optionalTimestamp("code_failed_at"),
            lockedAt: try optionalTimestamp("codes_locked_at"))
    }
}

/// Statements that use up a right code, as part of the script in which it ends its challenge.
extension UsedCode {
    /// The rows on which the right code relies, and those that it uses up.
    var rows: [SignedRows] {
        switch kind {
        case .own: [.factor(factor).signed]
        case .sent(let counter): [.factor(factor).signed, .sentCode(of: factor, counter)]
        case .recovery(let digest): [.factor(factor).signed, .recoveryCode(digest, of: user).signed]
        }
    }

    /// Ends the challenge. Behind the values of an end, it adds the values of the conditions that
    /// must still be true.
    func ends(_ closing: ChallengeEnd, _ end: [SQLValue]) -> BoundStatement {
        let known: [SQLValue] = [.timestamp(closing.at), .id(factor), .integer(Int64(failures))]
        switch kind {
        case .own(let counter, _): return BoundStatement(endByOwn, values: end + known + [.integer(counter)])
        case .sent(let counter):
            return BoundStatement(endBySent, values: end + known + [.integer(counter), .timestamp(closing.at)])
        case .recovery(let digest): return BoundStatement(endByRecovery, values: end + known + [.blob(digest)])
        }
    }

    /// Uses the code up and clears the failures of its factor. The failures of other factors stay.
    func usedUp(_ closing: ChallengeEnd, _ mine: [SQLValue], as operation: Operation) -> [BoundStatement] {
        let forgets = CodeFailures.forget(factor, of: user, ending: closing.challenge, by: operation)
        switch kind {
        case .own(_, let next):
            return [BoundStatement(moveCounter, values: [.integer(next), .id(factor)] + mine)] + forgets
        case .sent: return forgets
        case .recovery(let digest):
            return [BoundStatement(useRecovery, values: [.timestamp(closing.at), .id(user), .blob(digest)] + mine)]
                + forgets
        }
    }
}

private let activeOfUser = Statement(
    "SELECT " + CodeFactors.columns + " FROM factor f WHERE f.user_id = ? AND f.state = 'active'")

/// Reads the codes that were sent, the newest first, because most people enter that one.
private let sentFor = Statement(
    """
    SELECT factor_id, counter FROM sent_code WHERE challenge_id = ? AND expires_at > ? ORDER BY counter DESC
    """)

private let unusedRecovery = Statement(
    "SELECT 1 FROM recovery_code WHERE user_id = ? AND digest = ? AND used_at IS NULL")

private let lockoutOfUser = Statement("SELECT " + CodeLockout.columns() + " FROM user WHERE id = ?")

private let standing = """
     AND expires_at > ? AND EXISTS (SELECT 1 FROM factor f JOIN user u ON u.id = f.user_id
    WHERE f.id = ? AND f.state = 'active' AND f.user_id = challenge.user_id AND u.state = 'active'
    AND u.codes_locked_at IS NULL AND u.code_failures = ?
    """

private let endByOwn = Statement(ChallengeEnds.end + standing + " AND f.counter = ?)")

private let endBySent = Statement(
    ChallengeEnds.end + standing + """
         AND EXISTS (SELECT 1 FROM sent_code s
        WHERE s.factor_id = f.id AND s.counter = ? AND s.challenge_id = challenge.id AND s.expires_at > ?))
        """)

private let endByRecovery = Statement(
    ChallengeEnds.end + standing + """
         AND EXISTS (SELECT 1 FROM recovery_code r WHERE r.user_id = f.user_id AND r.digest = ? AND r.used_at IS NULL))
        """)

private let moveCounter = Statement("UPDATE factor SET counter = ? WHERE id = ? AND" + ChallengeEnds.ended)

private let useRecovery = Statement(
    "UPDATE recovery_code SET used_at = ? WHERE user_id = ? AND digest = ? AND used_at IS NULL AND"
        + ChallengeEnds.ended)
