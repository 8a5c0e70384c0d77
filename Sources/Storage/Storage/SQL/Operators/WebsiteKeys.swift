import Domain
import Relay
import World

/// The operator's control of a website's access.
extension Websites {
    public struct Key: Sendable, Equatable {
        /// The SHA-256 of the key's SubjectPublicKeyInfo.
        public let thumbprint: [UInt8]
        public let createdAt: Timestamp
    }

    public static func keys(of website: WebsiteID) -> Query<[Key]> {
        Query(script: Script("website keys", reads: [BoundStatement(keysOfWebsite, .id(website))])) {
            rows throws(StoreFailure) in
            var keys: [Key] = []
            for row in rows[0] { keys.append(Key(thumbprint: try row.blob(0), createdAt: try row.timestamp(1))) }
            return keys
        }
    }

    /// Revokes one key, or all keys if none is given. The answer is false if there is none.
    public static func revokeKeys(
        of website: WebsiteID, _ thumbprint: [UInt8]?, at now: Timestamp, as operation: Operation
    ) -> Query<Bool> {
        let key = thumbprint.map { [SQLValue.blob($0)] } ?? []
        return Query(
            change: Change(
                "website revoke-key", operation,
                [
                    BoundStatement(
                        thumbprint == nil ? markIfAnyKey : markIfKey, values: [.id(operation), .id(website)] + key),
                    BoundStatement(
                        auditRight, .id(operation), .timestamp(now), .text("website.key_revoked"), .id(website),
                        .id(operation)),
                    BoundStatement(
                        thumbprint == nil ? dropAllKeys : dropKey,
                        values: [.id(website)] + key + [.id(website), .id(operation)]),
                ])
        ) { rows in rows.happened }
    }

    /// Disables or enables a website. The answer is false if it has that state already.
    public static func set(
        _ website: WebsiteID, isDisabled: Bool, at now: Timestamp, as operation: Operation
    ) -> Query<Bool> {
        let state = isDisabled ? "disabled" : "active"
        let row = SignedRows.website(website)
        return Query(
            change: Change(
                "website state", operation, rows: [isDisabled ? row.lenient : row.signed],
                [
                    BoundStatement(setState, .text(state), .id(operation), .id(website), .text(state)),
                    BoundStatement(
                        auditRight, .id(operation), .timestamp(now),
                        .text(isDisabled ? "website.disabled" : "website.enabled"), .id(website), .id(operation)),
                ])
        ) { rows in rows.happened }
    }
}

private let keysOfWebsite = Statement(
    "SELECT thumbprint, created_at FROM website_key WHERE website_id = ? ORDER BY created_at, thumbprint")

private let mark = "UPDATE website SET operation = ? WHERE id = ? AND EXISTS "
private let markIfAnyKey = Statement(mark + "(SELECT 1 FROM website_key k WHERE k.website_id = website.id)")
private let markIfKey = Statement(
    mark + "(SELECT 1 FROM website_key k WHERE k.website_id = website.id AND k.thumbprint = ?)")

private let byThisChange = " AND EXISTS (SELECT 1 FROM website w WHERE w.id = ? AND w.operation = ?)"
private let dropAllKeys = Statement("DELETE FROM website_key WHERE website_id = ?" + byThisChange)
private let dropKey = Statement("DELETE FROM website_key WHERE website_id = ? AND thumbprint = ?" + byThisChange)

private let setState = Statement("UPDATE website SET state = ?, operation = ? WHERE id = ? AND state <> ?")

private let auditRight = Statement(
    Audit.columns + """
         SELECT ?, ?, ?, w.id, NULL, NULL, NULL, 'operator', NULL FROM website w
        WHERE w.id = ? AND w.operation = ?
        """ + Audit.once)
