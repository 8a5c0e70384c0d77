import Bytes
import Domain
import Relay
import World

extension Store: WebsiteRenewalStore {
    public func certificates(
        ofKey key: [UInt8], of website: WebsiteID, at now: Timestamp
    ) async throws(StoreFailure) -> WebsiteKeyCertificates? {
        guard schemaVersion >= 3 else {
            throw .mismatched(
                "the tables have the version \(schemaVersion), and renewals by websites need 3",
                remedy: "Run 'twoefay migrate', then restart the relays.")
        }
        let (key, now) = (SQLValue.blob(key), SQLValue.timestamp(now))
        let reads = [
            newestOfKey(thumbprint: key, website: .id(website), now: now), countOfFormer(thumbprint: key, now: now),
        ]
        return try await run(
            Query(script: Script("website renewal", reads: reads)) { rows throws(StoreFailure) in
                guard let row = rows[0].first else { return nil }
                return WebsiteKeyCertificates(
                    newest: try WebsiteCertificate(row), formerCount: Int(try rows[1].first?.integer("living") ?? 0))
            })
    }

    public func renew(_ renewal: WebsiteRenewal, as operation: Operation) async throws(StoreFailure) -> Bool {
        let (website, key) = (SQLValue.id(renewal.website), SQLValue.blob(renewal.key))
        let (marked, serial) = (SQLValue.id(operation), SQLValue.text(renewal.certificate.serial))
        let change = Change(
            "website renewal", operation,
            rows: [.website(renewal.website).signed, .websiteKey(renewal.key).signed],
            [
                markForRenewal(
                    operation: marked, website: website, thumbprint: key, now: .timestamp(renewal.at), serial: serial,
                    most: .integer(Int64(WebsiteRenewal.most)),
                    lately: .timestamp(renewal.at - WebsiteRenewal.pause)),
                auditRenewal(
                    operation: marked, now: .timestamp(renewal.at), website: website,
                    note: .text(Hex.encode(renewal.key)), changes: .text(renewal.changes.text)),
                keepFormer(thumbprint: key, serial: serial, website: website, operation: marked),
                replaceNewest(
                    notBefore: .timestamp(renewal.certificate.notBefore),
                    notAfter: .timestamp(renewal.certificate.notAfter), issuer: .blob(renewal.certificate.issuer),
                    serial: serial, thumbprint: key, website: website, operation: marked),
            ])
        return try await run(Query(change: change) { rows in rows.happened })
    }
}

private let newestOfKey = Statement(
    """
    SELECT not_before, not_after, issuer, serial FROM website_key
    WHERE thumbprint = :thumbprint AND website_id = :website AND (ends_at IS NULL OR ends_at > :now)
    """)

private let countOfFormer = Statement(
    "SELECT count(*) AS living FROM website_certificate WHERE thumbprint = :thumbprint AND not_after > :now")

/// Marks the website's row, so that renewals at the same time are counted one by one. A script that
/// runs again finds its own certificate, and marks nothing.
private let markForRenewal = Statement(
    """
    UPDATE website SET operation = :operation WHERE id = :website AND state = 'active' AND EXISTS
    (SELECT 1 FROM website_key k WHERE k.thumbprint = :thumbprint AND k.website_id = website.id
    AND (k.ends_at IS NULL OR k.ends_at > :now) AND (k.serial IS NULL OR k.serial <> :serial)
    AND (k.not_before IS NULL OR k.not_before <= :lately OR (SELECT count(*) FROM website_certificate c
    WHERE c.thumbprint = :thumbprint AND c.not_after > :now) < :most))
    """)

private let auditRenewal = Statement.audit(
    """
    INSERT INTO audit (operation, at, event, website_id, outcome)
    SELECT :operation, :now, 'website.renewed', w.id, 'website' FROM website w
    WHERE w.id = :website AND w.operation = :operation
    \(Audit.once)
    """)

private let keepFormer = Statement(
    """
    INSERT INTO website_certificate (issuer, serial, thumbprint, website_id, not_before, not_after, used_at)
    SELECT k.issuer, k.serial, k.thumbprint, k.website_id, k.not_before, k.not_after, k.used_at FROM website_key k
    WHERE k.thumbprint = :thumbprint AND k.not_after IS NOT NULL AND k.serial <> :serial
    AND \(Websites.websiteMarked)
    /*M! ON DUPLICATE KEY UPDATE serial = website_certificate.serial */ /*S! ON CONFLICT DO NOTHING */
    """)

/// Nobody has used the new certificate yet.
private let replaceNewest = Statement(
    """
    UPDATE website_key SET not_before = :notBefore, not_after = :notAfter, issuer = :issuer, serial = :serial,
    used_at = NULL
    WHERE thumbprint = :thumbprint AND website_id = :website AND (serial IS NULL OR serial <> :serial)
    AND \(Websites.websiteMarked)
    """)
