import Domain
import Relay
import World

extension Store: RevocationStore {
    public func revocations(after number: Int64) async throws(StoreFailure) -> [StoreChange] {
        let rows = try await watch(Script("revocations", reads: [revocationsAfter(number: .integer(number))]))
        var changes: [StoreChange] = []
        for row in rows[0] {
            changes.append(
                StoreChange(
                    number: try row.integer("id"), event: try row.text("event"),
                    device: try row.optionalID("device_id"), website: try row.optionalID("website_id")))
        }
        return changes
    }
}

private let revocationsAfter = Statement(
    """
    SELECT id, event, device_id, website_id FROM audit
    WHERE id > :number AND event IN ('website.key_revoked', 'website.disabled', 'device.unbound', 'device.suspended',
    'device.withdrawn') ORDER BY id
    """)

extension Store {
    public func endedKeys(after start: Timestamp, until now: Timestamp) async throws(StoreFailure) -> [EndedKey] {
        let read = keysEnded(start: .timestamp(start), now: .timestamp(now))
        var keys: [EndedKey] = []
        for row in try await watch(Script("ended keys", reads: [read]))[0] {
            keys.append(EndedKey(thumbprint: try row.blob("thumbprint"), of: try row.id("website_id")))
        }
        return keys
    }

    public func keys(of website: WebsiteID, at now: Timestamp) async throws(StoreFailure) -> WebsiteKeys? {
        let rows = try await run(
            Script(
                "website keys",
                reads: [
                    nameOfWebsite(website: .id(website)), keysOfActive(website: .id(website), now: .timestamp(now)),
                ]))
        guard let name = try rows[0].first?.text("name") else { return nil }
        var keys: [[UInt8]] = []
        for row in rows[1] { keys.append(try row.blob("thumbprint")) }
        return WebsiteKeys(name: name, keys: keys)
    }
}

private let nameOfWebsite = Statement("SELECT name FROM website WHERE id = :website")

private let keysOfActive = Statement(
    """
    SELECT k.thumbprint FROM website_key k JOIN website w ON w.id = k.website_id
    WHERE w.id = :website AND w.state = 'active' AND (k.ends_at IS NULL OR k.ends_at > :now)
    """)

private let keysEnded = Statement(
    "SELECT thumbprint, website_id FROM website_key WHERE ends_at > :start AND ends_at <= :now")
