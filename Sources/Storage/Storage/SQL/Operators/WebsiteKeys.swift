import Bytes
import Domain
import Relay
import World

/// The operator's control of a website's access.
extension Websites {
    public struct Key: Sendable, Equatable {
        /// The SHA-256 of the key's SubjectPublicKeyInfo.
        public let thumbprint: [UInt8]
        public let createdAt: Timestamp
        /// The newest certificate of the key; nil if the store does not know it.
        public let certificate: WebsiteCertificate?
        /// The certificates before, which have not expired.
        public internal(set) var former: [WebsiteCertificate] = []
        /// From then on the key is refused; nil if it is valid while its certificate is.
        public let endsAt: Timestamp?
        /// The last request with the key, a few seconds late.
        public internal(set) var usedAt: Timestamp?

        /// All certificates of the key that the store knows, for a revocation list.
        public var certificates: [WebsiteCertificate] { [certificate].compactMap(\.self) + former }
    }

    public static func keys(of website: WebsiteID) -> Query<[Key]> {
        let reads = [keysOfWebsite(website: .id(website)), formerOfWebsite(website: .id(website))]
        return Query(script: Script("website keys", reads: reads)) { rows throws(StoreFailure) in
            var keys: [Key] = []
            for row in rows[0] {
                keys.append(
                    Key(
                        thumbprint: try row.blob("thumbprint"), createdAt: try row.timestamp("created_at"),
                        certificate: try WebsiteCertificate(row), endsAt: try row.optionalTimestamp("ends_at"),
                        usedAt: try row.optionalTimestamp("used_at")))
            }
            for row in rows[1] {
                let thumbprint = try row.blob("thumbprint")
                guard let index = keys.firstIndex(where: { $0.thumbprint == thumbprint }),
                    let certificate = try WebsiteCertificate(row)
                else { continue }
                keys[index].former.append(certificate)
                let used = [keys[index].usedAt, try row.optionalTimestamp("used_at")]
                keys[index].usedAt = used.compactMap(\.self).max()
            }
            return keys
        }
    }

    private static let keysOfWebsite = Statement(
        """
        SELECT thumbprint, created_at, not_before, not_after, issuer, serial, ends_at, used_at FROM website_key
        WHERE website_id = :website ORDER BY created_at, thumbprint
        """)

    private static let formerOfWebsite = Statement(
        """
        SELECT thumbprint, not_before, not_after, issuer, serial, used_at FROM website_certificate
        WHERE website_id = :website ORDER BY not_after, serial
        """, since: 3)

    /// Lets relays refuse these keys, so that they get no further certificates until they are revoked.
    public static func stopKeys(of website: WebsiteID, _ thumbprints: [[UInt8]], at now: Timestamp) -> Query<Void> {
        // The clocks of relays may be behind.
        let end = now - .seconds(86_400)
        let writes = thumbprints.map {
            stopKey(end: .timestamp(end), website: .id(website), thumbprint: .blob($0))
        }
        let script = Script("website keys stop", rows: [SignedRows.keys(of: website).lenient], writes: writes)
        return Query(script: script) { _ in () }
    }

    private static let stopKey = Statement(
        """
        UPDATE website_key SET ends_at = :end WHERE website_id = :website AND thumbprint = :thumbprint
        AND (ends_at IS NULL OR ends_at > :end)
        """)

    /// Revokes one key, or all keys if none is given. The answer is false if there is none.
    public static func revokeKeys(
        of website: WebsiteID, _ thumbprint: [UInt8]?, at now: Timestamp, as operation: Operation
    ) -> Query<Bool> {
        let audit = auditChange(
            operation: .id(operation), now: .timestamp(now), event: .text("website.key_revoked"),
            website: .id(website), note: .text(thumbprint.map { Hex.encode($0) } ?? "all"))
        let writes =
            if let thumbprint {
                [
                    markIfKey(operation: .id(operation), website: .id(website), thumbprint: .blob(thumbprint)), audit,
                    dropCertificates(
                        website: .id(website), thumbprint: .blob(thumbprint), operation: .id(operation)),
                    dropKey(website: .id(website), thumbprint: .blob(thumbprint), operation: .id(operation)),
                ]
            } else {
                [
                    markIfAnyKey(operation: .id(operation), website: .id(website)), audit,
                    dropAllCertificates(website: .id(website), operation: .id(operation)),
                    dropAllKeys(website: .id(website), operation: .id(operation)),
                ]
            }
        return Query(change: Change("website revoke-key", operation, writes)) { rows in rows.happened }
    }

    private static let markIfKey = Statement("\(mark) (\(keys) AND k.thumbprint = :thumbprint)")
    private static let markIfAnyKey = Statement("\(mark) (\(keys))")
    private static let mark = "UPDATE website SET operation = :operation WHERE id = :website AND EXISTS"
    private static let keys = "SELECT 1 FROM website_key k WHERE k.website_id = website.id"

    private static let dropKey = Statement(
        "DELETE FROM website_key WHERE website_id = :website AND thumbprint = :thumbprint AND \(websiteMarked)")
    static let dropAllKeys = Statement(
        "DELETE FROM website_key WHERE website_id = :website AND \(websiteMarked)")
    private static let dropCertificates = Statement(
        "DELETE FROM website_certificate WHERE website_id = :website AND thumbprint = :thumbprint AND \(websiteMarked)",
        since: 3)
    static let dropAllCertificates = Statement(
        "DELETE FROM website_certificate WHERE website_id = :website AND \(websiteMarked)", since: 3)

    /// The condition that the operation has marked the website's row.
    static let websiteMarked =
        "EXISTS (SELECT 1 FROM website w WHERE w.id = :website AND w.operation = :operation)"

    /// Disables or enables a website. The answer is false if it has that state already, or was
    /// removed.
    public static func set(
        _ website: WebsiteID, isDisabled: Bool, at now: Timestamp, as operation: Operation
    ) -> Query<Bool> {
        let row = SignedRows.website(website)
        return Query(
            change: Change(
                "website state", operation, rows: [isDisabled ? row.lenient : row.signed],
                [
                    setState(
                        state: .text(isDisabled ? "disabled" : "active"), operation: .id(operation),
                        website: .id(website)),
                    auditChange(
                        operation: .id(operation), now: .timestamp(now),
                        event: .text(isDisabled ? "website.disabled" : "website.enabled"), website: .id(website)),
                ])
        ) { rows in rows.happened }
    }

    private static let setState = Statement(
        """
        UPDATE website SET state = :state, operation = :operation
        WHERE id = :website AND state <> :state AND state <> 'removed'
        """)
}
