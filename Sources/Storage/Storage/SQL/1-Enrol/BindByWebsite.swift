import Domain
import Relay

/// Binding by the website, as in the original product.
extension Store {
    public func bindByWebsite(
        _ device: NewDevice, website: WebsiteID, as operation: Operation
    ) async throws(StoreFailure) -> WebsiteBindOutcome {
        let user: [SQLValue] = [.id(device.user), .id(operation)]
        let audit: [SQLValue] = [.id(operation), .timestamp(device.at), .id(device.id)] + user
        let change = Change(
            "bind", operation,
            rows: [.user(device.user).signed, .device(device.id).signed]
                + AccountEventRows.rows(.deviceBound, as: operation),
            [
                BoundStatement(markUserOfWebsite, .id(operation), .id(device.user), .id(website)),
                BoundStatement(auditReplaced, values: audit),
                BoundStatement(updateWebsitePhone, values: device.changes(operation) + [.id(device.id)] + user),
                BoundStatement(insertWebsitePhone, values: device.values(operation) + user),
                BoundStatement(auditByWebsite, values: audit),
            ]
                + AccountEventRows.steps(
                    .deviceBound, user: device.user, device: device.id, after: BoundPhone.event, at: device.at,
                    as: operation),
            reads: [BoundStatement(stopped, .id(device.id))])
        return try await run(
            Query(change: change) { rows in rows.happened ? .done : rows[1].isEmpty ? .gone : .blockedByOperator })
    }
}

private let markUserOfWebsite = Statement("UPDATE user SET operation = ? WHERE id = ? AND website_id = ?")

/// Audits a new push token of a phone that is already bound. Nobody is notified of it.
private let auditReplaced = Statement(
    Audit.columns + """
         SELECT ?, ?, 'device.changed', u.website_id, u.id, NULL, d.id, NULL, 'website'
        FROM device d JOIN user u ON u.id = d.user_id
        WHERE d.id = ? AND d.state = 'active' AND u.id = ? AND u.operation = ?
        """ + Audit.once)
private let updateWebsitePhone = Statement(
    BoundPhone.changes
        + " AND coalesce(stopped_by, '') <> 'operator' AND EXISTS (SELECT 1 FROM user WHERE id = ? AND operation = ?)")
private let insertWebsitePhone = Statement(
    into: .device, once: true,
    BoundPhone.insertion + """
         SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, u.id, 0 FROM user u WHERE u.id = ? AND u.operation = ?
        """)
private let auditByWebsite = Statement(
    Audit.columns + """
         SELECT ?, ?, 'device.bound', u.website_id, u.id, NULL, d.id, NULL, 'website'
        FROM device d JOIN user u ON u.id = d.user_id
        WHERE d.id = ? AND d.operation = u.operation AND u.id = ? AND u.operation = ?
        """ + Audit.once)

private let stopped = Statement("SELECT 1 FROM device WHERE id = ? AND stopped_by = 'operator'")
