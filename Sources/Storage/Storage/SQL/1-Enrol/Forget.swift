import Domain
import Relay
import World

/// Deletes a user with all rows except those of the audit.
extension Store {
    public func forget(
        _ user: UserID, website: WebsiteID, at now: Timestamp, as operation: Operation
    ) async throws(StoreFailure) -> [ChallengeID]? {
        try await run(UserDeletion.delete(user, of: website, by: .website, at: now, as: operation))
    }
}

public enum UserDeletion {
    /// Deletes a user.
    ///
    /// - Returns: the challenges that this ends; nil if there is no such user.
    public static func delete(
        _ user: UserID, of website: WebsiteID, by author: ChangeAuthor, at now: Timestamp, as operation: Operation
    ) -> Query<[ChallengeID]?> {
        let change = Change(
            "forget", operation,
            [
                markUser(operation: .id(operation), user: .id(user), website: .id(website)),
                endOpen(now: .timestamp(now), operation: .id(operation), user: .id(user)),
                auditForgotten(
                    operation: .id(operation), now: .timestamp(now), author: .word(author), user: .id(user)),
                auditOthersEnded(now: .timestamp(now), user: .id(user), operation: .id(operation)),
                CertificateRows.revokeOfUser(now: .timestamp(now), user: .id(user), operation: .id(operation)),
            ] + belongings.map { $0(user: .id(user), operation: .id(operation)) }
                + [forgetUser(user: .id(user), operation: .id(operation))],
            reads: [endedWith(operation: .id(operation))])
        return Query(change: change) { rows throws(StoreFailure) in
            guard rows.happened else { return nil }
            var ended: [ChallengeID] = []
            for row in rows[1] { ended.append(try row.id("challenge_id")) }
            return ended
        }
    }
}

/// Locks the user's row, so that two changes of one user run one after the other.
private let markUser = Statement("UPDATE user SET operation = :operation WHERE id = :user AND website_id = :website")

/// Cancels open challenges. If another change ends one at the same time, only one of the two takes
/// effect.
private let endOpen = Statement(
    """
    UPDATE challenge SET state = 'cancelled', reason = 'cancelled', decided_at = :now, operation = :operation
    WHERE user_id = :user AND decided_at IS NULL AND expires_at > :now AND \(Guards.userMarked)
    """)

/// Audits the deletion. The newest challenge is deleted with the user, so this row also reports its
/// end.
private let auditForgotten = Statement.audit(
    """
    INSERT INTO audit (operation, at, event, website_id, user_id, challenge_id, outcome)
    SELECT :operation, :now, 'user.forgotten', u.website_id, u.id, c.id, :author FROM user u
    LEFT JOIN challenge c ON c.id = u.challenge_id AND c.operation = :operation
    WHERE u.id = :user AND u.operation = :operation
    \(Audit.once)
    """)

/// Audits the ends of the challenges that were open beside the newest one (see `OpenChallenges`).
/// The statement must follow `auditForgotten`, because `endedWith` finds these rows after its row.
private let auditOthersEnded = Statement.audit(
    """
    \(Audit.endedChallenges) c.user_id = :user AND c.operation = :operation
    AND \(OpenChallenges.besideNamed)
    \(Audit.once)
    """)

/// Reads all challenges that this change has ended. Their own rows are deleted, so the read finds
/// them in the audit. The audit has no index for users, so the read begins at the row of the
/// deletion, which is among the newest.
private let endedWith = Statement(
    """
    SELECT a.challenge_id FROM audit f
    JOIN audit a ON a.id >= f.id AND a.at = f.at AND a.user_id = f.user_id
    AND a.event IN ('user.forgotten', 'challenge.ended')
    WHERE f.operation = :operation AND a.challenge_id IS NOT NULL ORDER BY a.id
    """)

/// The statements that delete what belongs to the user. Rows that are found by another row precede
/// it.
private let belongings = [
    forgetSecrets, forgetEntries, forgetNews, forgetSteps, forgetChallenges, forgetReports, forgetTagged, forgetDevices,
    forgetAttestations, forgetWebPhones, forgetActivations, forgetSentCodes, forgetFactors, forgetRecoveryCodes,
    forgetTemporaryCodes, forgetNotices, forgetRecoveries, forgetWords,
]

/// Deletes the words of the user's audit rows. The rows keep a digest of them.
private let forgetWords = Statement(
    """
    DELETE /*M! d */ FROM audit_detail
    /*M! AS d JOIN audit a ON a.operation = d.operation WHERE a.user_id = :user */
    /*S! WHERE operation IN (SELECT a.operation FROM audit a WHERE a.user_id = :user) */
    AND \(Guards.audited)
    """)

/// Mails alone have secrets.
private let forgetSecrets = Statement(
    """
    DELETE /*M! s */ FROM operation_secret
    /*M! AS s JOIN outbox o ON o.id = s.operation WHERE o.user_id = :user AND o.kind = 'mail' */
    /*S! WHERE operation IN (SELECT o.id FROM outbox o WHERE o.user_id = :user AND o.kind = 'mail') */
    AND \(Guards.audited)
    """)
private let forgetEntries = Statement(
    """
    DELETE /*M! o */ FROM outbox
    /*M! AS o JOIN challenge c ON c.id = o.challenge_id WHERE c.user_id = :user */
    /*S! WHERE challenge_id IN (SELECT id FROM challenge WHERE user_id = :user) */
    AND \(Guards.audited)
    """)
private let forgetNews = Statement("DELETE FROM outbox WHERE user_id = :user AND \(Guards.audited)")
private let forgetSteps = Statement(
    """
    DELETE /*M! s */ FROM step
    /*M! AS s JOIN challenge c ON c.id = s.challenge_id WHERE c.user_id = :user */
    /*S! WHERE challenge_id IN (SELECT id FROM challenge WHERE user_id = :user) */
    AND \(Guards.audited)
    """)
private let forgetChallenges = Statement("DELETE FROM challenge WHERE user_id = :user AND \(Guards.audited)")
private let forgetReports = Statement(
    """
    DELETE /*M! r */ FROM device_report
    /*M! AS r JOIN device d ON d.id = r.device_id WHERE d.user_id = :user */
    /*S! WHERE device_id IN (SELECT id FROM device WHERE user_id = :user) */
    AND \(Guards.audited)
    """)
private let forgetTagged = Statement("DELETE FROM tagged_certificate WHERE user_id = :user AND \(Guards.audited)")
private let forgetDevices = Statement("DELETE FROM device WHERE user_id = :user AND \(Guards.audited)")
private let forgetAttestations = Statement("DELETE FROM attestation WHERE user_id = :user AND \(Guards.audited)")
private let forgetWebPhones = Statement(
    "DELETE FROM web_phone WHERE user_id = :user AND \(Guards.audited)", since: 3)
private let forgetActivations = Statement("DELETE FROM activation WHERE user_id = :user AND \(Guards.audited)")
private let forgetSentCodes = Statement(
    """
    DELETE /*M! s */ FROM sent_code
    /*M! AS s JOIN factor f ON f.id = s.factor_id WHERE f.user_id = :user */
    /*S! WHERE factor_id IN (SELECT id FROM factor WHERE user_id = :user) */
    AND \(Guards.audited)
    """)
private let forgetFactors = Statement("DELETE FROM factor WHERE user_id = :user AND \(Guards.audited)")
private let forgetRecoveryCodes = Statement("DELETE FROM recovery_code WHERE user_id = :user AND \(Guards.audited)")
private let forgetTemporaryCodes = Statement("DELETE FROM temporary_code WHERE user_id = :user AND \(Guards.audited)")
private let forgetNotices = Statement("DELETE FROM notice WHERE user_id = :user AND \(Guards.audited)")
private let forgetRecoveries = Statement("DELETE FROM recovery WHERE user_id = :user AND \(Guards.audited)")
private let forgetUser = Statement("DELETE FROM user WHERE id = :user AND \(Guards.audited)")
