import Domain
import Relay

extension Store: RevocationStore {
    public func revocations(after number: Int64) async throws(StoreFailure) -> [StoreChange] {
        let rows = try await watch(Script("revocations", reads: [BoundStatement(revoked, .integer(number))]))
        var changes: [StoreChange] = []
        for row in rows[0] {
            changes.append(
                StoreChange(
                    number: try row.integer(0), event: try row.text(1), device: try row.optionalID(2),
                    website: try row.optionalID(3)))
        }
        return changes
    }

    public func keys(of website: WebsiteID) async throws(StoreFailure) -> WebsiteKeys? {
        let rows = try await run(
            Script(
                "website keys",
                reads: [BoundStatement(nameOfWebsite, .id(website)), BoundStatement(keysOfActive, .id(website))]))
        guard let name = try rows[0].first?.text(0) else { return nil }
        var keys: [[UInt8]] = []
        for row in rows[1] { keys.append(try row.blob(0)) }
        return WebsiteKeys(name: name, keys: keys)
    }
}

private let revoked = Statement(
    """
    SELECT id, event, device_id, website_id FROM audit
    WHERE id > ? AND event IN ('website.key_revoked', 'website.disabled', 'device.unbound', 'device.suspended',
    'device.withdrawn') ORDER BY id
    """)
private let nameOfWebsite = Statement("SELECT name FROM website WHERE id = ?")
private let keysOfActive = Statement(
    """
    SELECT k.thumbprint FROM website_key k JOIN website w ON w.id = k.website_id
    WHERE w.id = ? AND w.state = 'active'
    """)
