import Domain
import Relay
import World

/// The removal of a website. Its users are deleted first, each as a website deletes one, so that
/// their phones, logins and codes end in the same way. The website must be disabled meanwhile.
public enum WebsiteRemoval {
    /// Returns some users of the website; none unless it is disabled.
    public static func users(of website: WebsiteID, limit: Int) -> Query<[UserID]> {
        let read = someUsers(website: .id(website), limit: .integer(Int64(limit)))
        return Query(script: Script("website users", reads: [read])) { rows throws(StoreFailure) in
            var users: [UserID] = []
            for row in rows[0] { users.append(try row.id("id")) }
            return users
        }
    }

    private static let someUsers = Statement(
        """
        SELECT u.id AS id FROM user u JOIN website w ON w.id = u.website_id
        WHERE u.website_id = :website AND w.state = 'disabled' LIMIT :limit
        """)

    /// Removes a disabled website without users: its keys, its webhooks and their secrets. The row
    /// stays, so that the audit can name the website. The answer is false if it is not disabled, or
    /// has users.
    public static func finish(_ website: WebsiteID, at now: Timestamp, as operation: Operation) -> Query<Bool> {
        let (id, marked) = (SQLValue.id(website), SQLValue.id(operation))
        let row = SignedRows.website(website)
        return Query(
            change: Change(
                "website remove", operation, rows: [row.signed],
                [
                    markRemoved(operation: marked, website: id),
                    Websites.auditChange(
                        operation: marked, now: .timestamp(now), event: .text("website.removed"), website: id),
                    Websites.dropAllCertificates(website: id, operation: marked),
                    Websites.dropAllKeys(website: id, operation: marked),
                    dropEndpoint(website: id, operation: marked), dropWebhooks(website: id, operation: marked),
                    dropAnswers(website: id, operation: marked),
                ])
        ) { rows in rows.happened }
    }

    private static let markRemoved = Statement(
        """
        UPDATE website SET state = 'removed', webhook_url = NULL, operation = :operation
        WHERE id = :website AND state = 'disabled'
        AND NOT EXISTS (SELECT 1 FROM user u WHERE u.website_id = website.id)
        """)

    private static let dropEndpoint = Statement(
        "DELETE FROM webhook_endpoint WHERE website_id = :website AND \(Websites.websiteMarked)")
    private static let dropWebhooks = Statement(
        "DELETE FROM outbox WHERE website_id = :website AND \(Websites.websiteMarked)")
    private static let dropAnswers = Statement(
        "DELETE FROM idempotency WHERE website_id = :website AND \(Websites.websiteMarked)")

    /// Gives a removed website's name away. No website can have the name that it gets instead,
    /// because of its first character.
    static func retire(_ website: WebsiteID, name: String, as operation: Operation) -> BoundStatement {
        retireName(
            retired: .text("~" + website.text), operation: .id(operation), website: .id(website), name: .text(name))
    }

    private static let retireName = Statement(
        """
        UPDATE website SET name = :retired, operation = :operation
        WHERE id = :website AND name = :name AND state = 'removed'
        """)
}
