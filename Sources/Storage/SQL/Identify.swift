import Domain
import Relay

extension Store: IdentifyStore {
    public func website(named name: String, key: [UInt8]) async throws(StoreFailure) -> WebsiteRow? {
        try await run(
            Query(script: Script("website", reads: [Step(websiteByKey, .text(name), .blob(key))])) {
                rows throws(StoreFailure) in
                guard let row = rows[0].first else { return nil }
                return WebsiteRow(
                    id: try row.id(0), name: try row.text(1), displayName: try row.text(2), policy: try row.text(3))
            })
    }

    public func device(_ id: DeviceID, key: [UInt8]) async throws(StoreFailure) -> DeviceRow? {
        try await run(
            Query(script: Script("device", reads: [Step(deviceByKey, .id(id), .blob(key))])) {
                rows throws(StoreFailure) in
                guard let row = rows[0].first else { return nil }
                return DeviceRow(id: try row.id(0), user: try row.id(1), state: try row.word(2))
            })
    }
}

private let websiteByKey = Statement(
    """
    SELECT w.id, w.name, w.display_name, w.policy
    FROM website w JOIN website_key k ON k.website_id = w.id
    WHERE w.name = ? AND k.thumbprint = ? AND w.state = 'active'
    """)

private let deviceByKey = Statement(
    """
    SELECT d.id, d.user_id, d.state
    FROM device d JOIN user u ON u.id = d.user_id JOIN website w ON w.id = u.website_id
    WHERE d.id = ? AND d.thumbprint = ? AND w.state = 'active'
    """)
