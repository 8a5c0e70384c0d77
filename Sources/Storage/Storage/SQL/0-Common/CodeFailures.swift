import Domain
import Relay
import World

extension Store: CodeFailureStore {
    public func countWrong(_ wrong: WrongCode, as operation: Operation) async throws(StoreFailure) -> CountedCode? {
        let lock = wrong.after.isLocked ? CodeLock(wrong, operation) : nil
        let end = WrongCodeEnd(wrong, operation)
        let writes =
            [Locks.hold(user: .id(wrong.user)), CodeFailures.audit(wrong, operation)]
            + CodeFailures.counted(wrong, operation)
        // Counting alone changes nothing that is signed.
        let user: [SignedRows] = lock == nil && end == nil ? [] : [.user(wrong.user).lenient]
        let change = Change(
            "code", operation, rows: user + (end?.rows ?? []) + (lock?.rows ?? []),
            writes + (end?.writes ?? []) + (lock?.writes ?? []),
            reads: (lock?.reads ?? []) + (end.map { [$0.read] } ?? []))
        return try await run(
            Query(change: change) { rows throws(StoreFailure) in
                guard rows.happened else { return nil }
                let hasEnded = end != nil && rows.last?.isEmpty == false
                return CountedCode(
                    locked: lock.map { $0.hasLocked(rows) } ?? false, open: try lock?.open(rows) ?? [],
                    hasEnded: hasEnded)
            })
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
        let kinds = wrong.factors.map(\.kind.rawValue)
        return auditWrong.bound(
            [
                "operation": .id(operation), "now": .timestamp(wrong.at), "challenge": .id(wrong.challenge),
                "kind": .text(kinds.count == 1 ? kinds[0] : nil), "user": .id(wrong.user), "state": .word(wrong.state),
                "failures": .integer(Int64(wrong.before.failures)), "count": .integer(Int64(kinds.count)),
                "waiting": .integer(Int64(wrong.factors.count { $0.state == .waiting })),
            ], lists: ["factor": wrong.factors.map { .id($0.id) }])
    }

    private static let auditWrong = Statement.audit(
        """
        INSERT INTO audit (operation, at, event, website_id, user_id, challenge_id, outcome, proof)
        SELECT :operation, :now, '\(WrongCode.event)', u.website_id, u.id, :challenge, :kind, 'code' FROM user u
        WHERE u.id = :user AND u.state = :state AND u.code_failures = :failures AND u.codes_locked_at IS NULL
        AND (SELECT count(*) FROM factor f WHERE f.user_id = u.id AND f.id IN \(factors)) = :count
        AND (SELECT count(*) FROM factor f WHERE f.user_id = u.id AND f.id IN \(factors) AND f.state = 'waiting') = :waiting
        AND (:challenge IS NULL OR EXISTS (SELECT 1 FROM challenge c WHERE c.id = :challenge AND c.user_id = u.id
        AND c.decided_at IS NULL AND c.expires_at > :now))
        \(Audit.once)
        """)

    /// The list `factor`.
    private static let factors =
        "(" + (1...WrongCode.mostFactors).map { ":factor\($0)" }.joined(separator: ", ") + ")"

    static func counted(_ wrong: WrongCode, _ operation: Operation) -> [BoundStatement] {
        let after = wrong.after
        return [
            countOfFactors.bound(
                ["now": .timestamp(wrong.at), "operation": .id(operation), "user": .id(wrong.user)],
                lists: ["factor": wrong.factors.map { .id($0.id) }]),
            countOfUser(
                failures: .integer(Int64(after.failures)), failedAt: .timestamp(after.failedAt),
                lockedAt: .timestamp(after.lockedAt), user: .id(wrong.user),
                before: .integer(Int64(wrong.before.failures)), operation: .id(operation)),
        ]
    }

    private static let countOfFactors = Statement(
        """
        UPDATE factor SET failures = failures + 1, failed_at = :now, operation = :operation
        WHERE user_id = :user AND id IN \(factors) AND operation <> :operation AND \(Guards.audited)
        """)

    private static let countOfUser = Statement(
        """
        UPDATE user SET code_failures = :failures, code_failed_at = :failedAt, codes_locked_at = :lockedAt
        WHERE id = :user AND code_failures = :before AND codes_locked_at IS NULL AND \(Guards.audited)
        """)
}
