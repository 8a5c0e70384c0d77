import Domain
import Relay
import World

extension Store: AuthenticationStore {
    public func website(
        named name: String, key: [UInt8], at now: Timestamp
    ) async throws(StoreFailure) -> WebsiteRow? {
        try await run(
            Query(
                script: Script("website", reads: [websiteByKey(name: .text(name), thumbprint: .blob(key))])
            ) { rows throws(StoreFailure) in
                guard let row = rows[0].first else { return nil }
                // The statement does not contain the time, so that the requests of a website that
                // wait together are one read.
                if let end = try row.optionalTimestamp("key_ends_at"), end <= now { return nil }
                return try WebsiteColumns.read(row)
            })
    }
}

private let websiteByKey = Statement(
    checking: [WebsiteColumns.checked, CheckedTable(.websiteKey, as: "k", prefix: "key_")],
    from: """
        \(SignedTable.website.checked(as: "w")) JOIN \(SignedTable.websiteKey.checked(as: "k")) ON k.website_id = w.id
        WHERE {w.name = :name AND k.thumbprint = :thumbprint} AND w.state = 'active'
        """)

/// The columns of the website of a request, and how they are read.
enum WebsiteColumns {
    /// The columns of the alias `w`.
    static let list = """
        w.id AS website_id, w.name AS website_name, w.display_name AS website_display_name, w.policy AS website_policy
        """

    /// The same columns in a checked read.
    static let checked = CheckedTable(.website, as: "w", prefix: "website_")

    static func read(_ row: Row) throws(StoreFailure) -> WebsiteRow {
        WebsiteRow(
            id: try row.id("website_id"), name: try row.text("website_name"),
            displayName: try row.text("website_display_name"), policy: try row.text("website_policy"))
    }
}

// MARK: Phones

extension Store {
    public func device(_ id: DeviceID, key: [UInt8]) async throws(StoreFailure) -> DeviceRow? {
        try await device(deviceByKeyAndID(thumbprint: .blob(key), device: .id(id)), key)
    }

    public func device(key: [UInt8]) async throws(StoreFailure) -> DeviceRow? {
        try await device(deviceByKey(thumbprint: .blob(key)), key)
    }

    private func device(_ step: BoundStatement, _ key: [UInt8]) async throws(StoreFailure) -> DeviceRow? {
        try await run(
            Query(script: Script("device", reads: [step])) { rows throws(StoreFailure) in
                guard let row = rows[0].first else { return nil }
                return DeviceRow(
                    id: try row.id("id"), user: try row.id("user_id"), state: try row.word("state"),
                    publicKey: try row.blob("public_key"), website: try WebsiteColumns.read(row),
                    failures: Int(try row.integer("failures")), failedAt: try row.optionalTimestamp("failed_at"),
                    platform: try row.word("platform"), unread: Int(try row.integer("unread")),
                    pin: try PINRows.read(row), pinSequence: try row.integer("pin_sequence"))
            })
    }
}

private let deviceByKeyAndID = Statement(
    checking: deviceTables, deviceColumns, from: "\(deviceOfKey) {d.id = :device AND d.thumbprint = :thumbprint}")
private let deviceByKey = Statement(
    checking: deviceTables, deviceColumns, from: "\(deviceOfKey) {d.thumbprint = :thumbprint}")

/// The website's row is checked, too, because its policy applies to the phone's answers.
private let deviceTables = [
    CheckedTable(.device, as: "d"), CheckedTable(.user, as: "u", prefix: "owner_"), WebsiteColumns.checked,
]

private let deviceColumns = [
    "d.state", "d.failures", "d.failed_at", "d.pin_sequence", PINRows.otherColumns,
    "\(NoticeRows.unread("u.id")) AS unread",
]

private let deviceOfKey = """
    \(SignedTable.device.checked(as: "d")) JOIN \(SignedTable.user.checked(as: "u")) ON u.id = d.user_id
    JOIN \(SignedTable.website.checked(as: "w")) ON w.id = u.website_id
    WHERE w.state = 'active' AND
    """
