import Domain
import Relay
import World

/// The deletion of expired rows that `ExpiredRowSearch` has found.
enum ExpiredRowDeletion {
    /// Deletes the rows that were found, if the relay still holds the task's lease. A relay that
    /// was stopped meanwhile therefore deletes nothing.
    static func drop(
        _ expired: ExpiredRows, _ found: ExpiredRowSearch.Found, by relay: RelayID
    ) -> [BoundStatement] {
        guard found.count > 0 else { return [] }
        let (before, holder, relay) = (SQLValue.timestamp(expired.before), relay, SQLValue.id(relay))
        let count = SQLValue.integer(Int64(found.count))
        switch expired.kind {
        case .temporary:
            return groups(found.ids).flatMap {
                TemporaryCodes.dropExpired($0, before: expired.before, by: holder)
            }
        case .answers: return [dropAnswers(before: before, relay: relay, limit: count)]
        case .secrets: return [dropSecrets(before: before, relay: relay, limit: count)]
        case .smsUsage:
            return [dropTallies(day: .text(UsageDay(expired.before).text), relay: relay, limit: count)]
        case .usage: return [dropUsage(day: .text(UsageDay(expired.before).text), relay: relay, limit: count)]
        case .activations: return [dropActivations(before: before, relay: relay, limit: count)]
        case .codes: return [dropCodes(before: before, relay: relay, limit: count)]
        case .certificates: return [dropCertificates(before: before, relay: relay, limit: count)]
        case .websiteCertificates: return [dropWebsiteCertificates(before: before, relay: relay, limit: count)]
        case .notices: return [dropNotices(before: before, relay: relay, limit: count)]
        case .recoveries: return [dropRecoveries(before: before, relay: relay, limit: count)]
        case .dead, .webhooks:
            return groups(found.ids).map { dropEntries.bound(["before": before, "relay": relay], lists: ["id": $0]) }
        case .challenges:
            return groups(found.ids).flatMap { ids in
                [dropSteps, dropSentCodes, dropChallenges].map { $0.bound(["relay": relay], lists: ["id": ids]) }
            }
        case .audit:
            return [
                dropAudit(
                    mark: .integer(expired.mark), last: .integer(found.mark), before: before, relay: relay)
            ]
        }
    }

    private static let dropAnswers = Statement(dropFirst("idempotency", "created_at < :before", by: "created_at"))

    private static let dropSecrets = Statement(dropFirst("operation_secret", "expires_at < :before", by: "expires_at"))

    private static let dropTallies = Statement(
        dropFirst("sms_usage", ExpiredRowSearch.oldTallies, by: "period, scope"))

    private static let dropUsage = Statement(dropFirst("website_usage", "day < :day", by: "day"))

    private static let dropActivations = Statement(dropFirst("activation", "expires_at < :before", by: "expires_at"))

    private static let dropCodes = Statement(dropFirst("sent_code", ExpiredRowSearch.oldCodes, by: "challenge_id"))

    private static let dropCertificates = Statement(
        dropFirst("certificate", "expires_at < :before", by: "expires_at"))

    private static let dropWebsiteCertificates = Statement(
        dropFirst("website_certificate", "not_after < :before", by: "not_after"), since: 3)

    private static let dropNotices = Statement(dropFirst("notice", "created_at < :before", by: "created_at"))

    private static let dropRecoveries = Statement(dropFirst("recovery", "expires_at < :before", by: "expires_at"))

    /// Makes the text of a statement that deletes the first rows of a table in the order of an
    /// index.
    private static func dropFirst(_ table: String, _ condition: String, by order: String) -> String {
        """
        DELETE FROM \(table) WHERE
        /*M! \(condition) AND \(isHeld) ORDER BY \(order) LIMIT :limit */
        /*S! rowid IN (SELECT rowid FROM \(table) WHERE \(condition) AND \(isHeld) ORDER BY \(order) LIMIT :limit) */
        """
    }

    /// The condition that the relay holds the lease of the task.
    private static let isHeld = RetentionLease.isHeld

    /// Deletes the entries that were found, except those that an operator has replayed since then.
    private static let dropEntries = Statement(
        """
        DELETE FROM outbox WHERE id IN \(ids) AND
        (dead_at < :before OR (dead_at IS NULL AND kind = '\(WebhookRows.kind)' AND expires_at < :before)) AND \(isHeld)
        """)

    private static let dropSteps = Statement("DELETE FROM step WHERE challenge_id IN \(ids) AND \(isHeld)")

    private static let dropSentCodes = Statement("DELETE FROM sent_code WHERE challenge_id IN \(ids) AND \(isHeld)")

    private static let dropChallenges = Statement("DELETE FROM challenge WHERE id IN \(ids) AND \(isHeld)")

    /// The list `id`.
    static let ids = "(" + (1...idsOfStatement).map { ":id\($0)" }.joined(separator: ", ") + ")"

    /// The number of ids in one statement.
    private static let idsOfStatement = 100

    /// Divides the ids into groups of the size of a statement.
    private static func groups(_ ids: [SQLValue]) -> [[SQLValue]] {
        stride(from: 0, to: ids.count, by: idsOfStatement).map {
            Array(ids[$0..<min($0 + idsOfStatement, ids.count)])
        }
    }

    private static let dropAudit = Statement(
        "DELETE FROM audit WHERE id > :mark AND id <= :last AND at < :before AND writer IS NULL AND \(isHeld)")
}
