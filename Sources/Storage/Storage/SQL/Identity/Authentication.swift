import Domain
import Relay

extension Store: AuthenticationStore {
    public func website(named name: String, key: [UInt8]) async throws(StoreFailure) -> WebsiteRow? {
        try await run(
            Query(
                script: Script(
                    "website", rows: [.website(named: name), .websiteKey(key)],
                    reads: [BoundStatement(websiteByKey, .text(name), .blob(key))])
            ) { rows throws(StoreFailure) in
                guard let row = rows[0].first else { return nil }
                return try row.website(0)
            })
    }

    public func device(_ id: DeviceID, key: [UInt8]) async throws(StoreFailure) -> DeviceRow? {
        try await device(BoundStatement(deviceByKeyAndID, .blob(key), .id(id)), key)
    }

    public func device(key: [UInt8]) async throws(StoreFailure) -> DeviceRow? {
        try await device(BoundStatement(deviceByKey, .blob(key)), key)
    }

    private func device(_ step: BoundStatement, _ key: [UInt8]) async throws(StoreFailure) -> DeviceRow? {
        // The website's row is checked, too, because its policy applies to the phone's answers.
        let rows: [SignedRows] = [.device(key: key), .user(calling: key), .website(calling: key)]
        return try await run(
            Query(script: Script("device", rows: rows, reads: [step])) { rows throws(StoreFailure) in
                guard let row = rows[0].first else { return nil }
                return DeviceRow(
                    id: try row.id(0), user: try row.id(1), state: try row.word(2), publicKey: try row.blob(3),
                    website: try row.website(4), failures: Int(try row.integer(8)),
                    failedAt: try row.optionalTimestamp(9), platform: try row.word(10))
            })
    }
}

extension Row {
    /// Reads the four columns of a website, starting at the column `first`.
    func website(_ first: Int) throws(StoreFailure) -> WebsiteRow {
        WebsiteRow(
            id: try id(first), name: try text(first + 1), displayName: try text(first + 2),
            policy: try text(first + 3))
    }
}

private let websiteByKey = Statement(
    """
    SELECT w.id, w.name, w.display_name, w.policy
    FROM website w JOIN website_key k ON k.website_id = w.id
    WHERE w.name = ? AND k.thumbprint = ? AND w.state = 'active'
    """)

private let deviceColumns = """
    SELECT d.id, d.user_id, d.state, d.public_key, w.id, w.name, w.display_name, w.policy, d.failures, d.failed_at,
        d.platform
    FROM device d JOIN user u ON u.id = d.user_id JOIN website w ON w.id = u.website_id
    WHERE w.state = 'active' AND d.thumbprint = ?
    """
private let deviceByKey = Statement(deviceColumns)
private let deviceByKeyAndID = Statement(deviceColumns + " AND d.id = ?")
