import Domain
import Relay
import World

extension Store: CodeStore {
    public func codes(
        for challenge: ChallengeID, of user: UserID, recovery: [UInt8]?, isTemporary: Bool, at now: Timestamp,
        as operation: OperationID
    ) async throws(StoreFailure) -> OpenCodes {
        // A code is compared with the rows that are read here, so they must be genuine here. The
        // check in the script that ends the challenge would be too late.
        let relied: [SignedRows] =
            [.user(user), .activeFactors(of: user), .sentCodes(for: challenge, at: now)]
            + (recovery.map { [.recoveryCode($0, of: user)] } ?? [])
            + (isTemporary ? [.temporaryCode(of: user)] : [])
        let script = Script(
            "codes", rows: relied,
            reads: [
                activeOfUser(user: .id(user), now: .timestamp(now)),
                sentFor(challenge: .id(challenge), now: .timestamp(now)),
                unusedRecovery(user: .id(user), digest: .blob(recovery)), Audit.happened(operation: .id(operation)),
                lockoutOfUser(user: .id(user)),
            ] + (isTemporary ? [TemporaryCodes.usable(user, at: now)] : []))
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                var factors: [CodeFactor] = []
                for row in rows[0] { factors.append(try CodeFactors.read(row)) }
                var sent: [FactorID: [Int64]] = [:]
                for row in rows[1] { sent[try row.id("factor_id"), default: []].append(try row.integer("counter")) }
                return OpenCodes(
                    factors: factors, sent: sent, isRecoveryCode: !rows[2].isEmpty,
                    temporary: isTemporary ? try rows[5].first.map(TemporaryCodes.read) : nil,
                    lockout: try rows[4].first?.codeLockout() ?? .none, isCounted: !rows[3].isEmpty,
                    hasUserExpired: UserExpiry.hasPassed(
                        try rows[4].first?.optionalTimestamp("expires_at"), at: now))
            })
    }
}

private let activeOfUser = Statement(
    "SELECT \(CodeFactors.columns) FROM factor f WHERE f.user_id = :user AND \(CodeFactors.count)")

/// Reads the codes that were sent, the newest first, because most people enter that one.
private let sentFor = Statement(
    """
    SELECT factor_id, counter FROM sent_code WHERE challenge_id = :challenge AND expires_at > :now
    ORDER BY counter DESC
    """)

private let unusedRecovery = Statement(
    """
    SELECT 1 FROM recovery_code r JOIN factor f ON f.id = r.factor_id
    WHERE r.user_id = :user AND r.digest = :digest AND r.used_at IS NULL AND f.state = 'active'
    """)

private let lockoutOfUser = Statement("SELECT \(CodeLockout.columns()), expires_at FROM user WHERE id = :user")

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
