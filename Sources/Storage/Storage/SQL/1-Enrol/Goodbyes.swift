import Domain
import Relay
import World

extension Store: GoodbyeStore {
    public func partingPhone(_ id: DeviceID) async throws(StoreFailure) -> PartingPhone? {
        let script = Script("goodbye", rows: [.device(id)], reads: [phoneInAnyState(device: .id(id))])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                guard let row = rows[0].first else { return nil }
                return PartingPhone(
                    state: try row.word("state"), stoppedBy: try row.optionalWord("stopped_by"),
                    publicKey: try row.blob("public_key"), key: try row.blob("thumbprint"),
                    website: try row.text("website_name"))
            })
    }
}

private let phoneInAnyState = Statement(
    """
    SELECT d.state, d.stopped_by, d.public_key, d.thumbprint, w.name AS website_name
    FROM device d JOIN user u ON u.id = d.user_id JOIN website w ON w.id = u.website_id
    WHERE d.id = :device AND d.public_key IS NOT NULL AND d.thumbprint IS NOT NULL
    """)
