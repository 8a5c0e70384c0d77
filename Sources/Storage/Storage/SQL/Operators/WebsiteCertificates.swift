import Bytes
import Domain
import JSON
import Relay
import World

extension WebsiteCertificate {
    /// Reads the columns of a key; nil if it was added without a certificate.
    init?(_ row: Row) throws(StoreFailure) {
        guard let notAfter = try row.optionalTimestamp("not_after") else { return nil }
        self.init(
            notBefore: try row.timestamp("not_before"), notAfter: notAfter, issuer: try row.blob("issuer"),
            serial: try row.text("serial"))
    }
}

// MARK: Renewal

extension Websites {
    /// A new key of a website.
    public struct Renewal: Sendable {
        public let website: WebsiteID
        public let thumbprint: [UInt8]
        public let certificate: WebsiteCertificate
        /// The end of all other keys; nil if they stay valid.
        public let othersEnd: Timestamp?
        public let at: Timestamp

        public init(
            of website: WebsiteID, thumbprint: [UInt8], certificate: WebsiteCertificate, othersEnd: Timestamp? = nil,
            at time: Timestamp
        ) {
            self.website = website
            self.thumbprint = thumbprint
            self.certificate = certificate
            self.othersEnd = othersEnd
            at = time
        }

        fileprivate var changes: ChangedValues {
            var changes = ChangedValues()
            changes.note("serial", .null, .string(certificate.serial))
            changes.note("expires_at", .null, .string(certificate.notAfter.rfc3339))
            changes.note("others_end", .null, .text(othersEnd?.rfc3339))
            return changes
        }
    }

    /// Registers a new key beside the present ones. The answer is false if the website was removed,
    /// or if the key is registered already.
    public static func renew(_ renewal: Renewal, as operation: Operation) -> Query<Bool> {
        let (website, thumbprint) = (SQLValue.id(renewal.website), SQLValue.blob(renewal.thumbprint))
        let (now, marked) = (SQLValue.timestamp(renewal.at), SQLValue.id(operation))
        let certificate = renewal.certificate
        var writes = [
            markForKey(operation: marked, website: website, thumbprint: thumbprint),
            auditChange(
                operation: marked, now: now, event: .text("website.renewed"), website: website,
                note: .text(Hex.encode(renewal.thumbprint)), changes: .text(renewal.changes.text)),
            addKey(
                thumbprint: thumbprint, now: now, notBefore: .timestamp(certificate.notBefore),
                notAfter: .timestamp(certificate.notAfter), issuer: .blob(certificate.issuer),
                serial: .text(certificate.serial), website: website, operation: marked),
        ]
        if let end = renewal.othersEnd {
            writes.append(
                endOthers(end: .timestamp(end), website: website, thumbprint: thumbprint, operation: marked))
        }
        return Query(
            change: Change(
                "website renew", operation,
                rows: [SignedRows.websiteKey(renewal.thumbprint).signed, SignedRows.keys(of: renewal.website).lenient],
                writes)
        ) { rows in rows.happened }
    }

    private static let markForKey = Statement(
        """
        UPDATE website SET operation = :operation WHERE id = :website AND state <> 'removed'
        AND NOT EXISTS (SELECT 1 FROM website_key k WHERE k.thumbprint = :thumbprint)
        """)

    private static let addKey = Statement(into: .websiteKey, once: true, newKey)

    /// Ends all present keys of a website, as a renewal did whose new key the store does not know.
    public static func endKeys(
        of website: WebsiteID, at end: Timestamp, now: Timestamp, as operation: Operation
    ) -> Query<Bool> {
        var changes = ChangedValues()
        changes.note("others_end", .null, .string(end.rfc3339))
        let writes = [
            markForEnd(operation: .id(operation), website: .id(website), end: .timestamp(end)),
            auditChange(
                operation: .id(operation), now: .timestamp(now), event: .text("website.keys_ended"),
                website: .id(website),
                note: .null, changes: .text(changes.text)),
            endOthers(
                end: .timestamp(end), website: .id(website), thumbprint: .blob([]), operation: .id(operation)),
        ]
        return Query(
            change: Change("website keys end", operation, rows: [SignedRows.keys(of: website).lenient], writes)
        ) { rows in rows.happened }
    }

    private static let markForEnd = Statement(
        """
        UPDATE website SET operation = :operation WHERE id = :website AND EXISTS (SELECT 1 FROM website_key k
        WHERE k.website_id = website.id AND (k.ends_at IS NULL OR k.ends_at > :end))
        """)

    private static let endOthers = Statement(
        """
        UPDATE website_key SET ends_at = :end
        WHERE website_id = :website AND thumbprint <> :thumbprint AND (ends_at IS NULL OR ends_at > :end)
        AND \(websiteMarked)
        """)
}

// MARK: Use and expiry

extension Store: WebsiteKeyStore {
    public func record(_ uses: [WebsiteKeyUse]) async throws(StoreFailure) {
        _ = try await run(
            Script(
                "website key use",
                writes: uses.flatMap { use in
                    let (now, key) = (SQLValue.timestamp(use.at), SQLValue.blob(use.thumbprint))
                    let serial = SQLValue.text(use.certificate?.serial)
                    return [
                        noteUse(
                            now: now, thumbprint: key, serial: serial,
                            notBefore: .timestamp(use.certificate?.notBefore)),
                        noteFormerUse(now: now, thumbprint: key, serial: serial),
                    ]
                }))
    }

    public func websiteExpiries(at now: Timestamp) async throws(StoreFailure) -> [WebsiteExpiry] {
        try await run(Websites.expiries(at: now))
    }
}

/// The use of the newest certificate, or of one that the store does not know.
private let noteUse = Statement(
    """
    UPDATE website_key SET used_at = :now WHERE thumbprint = :thumbprint AND (used_at IS NULL OR used_at < :now)
    AND (:serial IS NULL OR serial IS NULL OR serial = :serial OR not_before < :notBefore)
    """)

private let noteFormerUse = Statement(
    """
    UPDATE website_certificate SET used_at = :now
    WHERE thumbprint = :thumbprint AND serial = :serial AND (used_at IS NULL OR used_at < :now)
    """, since: 3)

extension Websites {
    /// Returns the active websites whose certificates are known, the one that expires first before
    /// the others.
    public static func expiries(at now: Timestamp) -> Query<[WebsiteExpiry]> {
        let reads = [readEnds(now: .timestamp(now)), readFormerEnds()]
        return Query(script: Script("website expiries", reads: reads)) { rows throws(StoreFailure) in
            var former: [[UInt8]: Timestamp] = [:]
            for row in rows[1] { former[try row.blob("thumbprint")] = try row.timestamp("former_end") }
            var ends: [String: Timestamp] = [:]
            for row in rows[0] {
                // The answer with the newest certificate may have been lost.
                let isUsed = try row.bool("is_used")
                let inUse = isUsed ? nil : former[try row.blob("thumbprint")]
                let newest = try row.timestamp("not_after")
                let certificateEnd = inUse ?? newest
                let end = min(certificateEnd, try row.optionalTimestamp("ends_at") ?? certificateEnd)
                let name = try row.text("name")
                ends[name] = max(ends[name] ?? end, end)
            }
            let expiries = ends.map { WebsiteExpiry(website: $0.key, expiresAt: $0.value) }
            return expiries.sorted { ($0.expiresAt, $0.website) < ($1.expiresAt, $1.website) }
        }
    }

    /// A key that ends before its certificate is refused from its end on.
    private static let readEnds = Statement(
        """
        SELECT w.name AS name, k.thumbprint, k.not_after, k.ends_at, k.used_at IS NOT NULL AS is_used
        FROM website w JOIN website_key k ON k.website_id = w.id
        WHERE w.state = 'active' AND k.not_after IS NOT NULL AND (k.ends_at IS NULL OR k.ends_at > :now)
        """)

    private static let readFormerEnds = Statement(
        "SELECT thumbprint, max(not_after) AS former_end FROM website_certificate GROUP BY thumbprint", since: 3)

    /// A website that still needs another authority than the one that signs now.
    public struct Unmoved: Sendable, Equatable {
        public let name: String
        /// Whether the website has a certificate of the authority.
        public let hasNew: Bool
        /// Whether one of its servers has used that certificate.
        public let usesNew: Bool
        /// The last use of a certificate of another authority.
        public internal(set) var lastOldUse: Timestamp?
    }

    /// Returns the websites that have not used a certificate of this authority yet, and those that
    /// have used one of another one in the last day: some of their servers have not moved.
    ///
    /// - Parameter issuer: SHA-256 of the authority's public key.
    public static func unmoved(to issuer: [UInt8], at now: Timestamp) -> Query<[Unmoved]> {
        let since = now - .seconds(86_400)
        let reads = [
            readUnmoved(issuer: .blob(issuer), now: .timestamp(now), since: .timestamp(since)),
            readFormerUses(issuer: .blob(issuer), now: .timestamp(now)),
        ]
        return Query(script: Script("websites unmoved", reads: reads)) { rows throws(StoreFailure) in
            var websites: [Unmoved] = []
            for row in rows[0] {
                websites.append(
                    Unmoved(
                        name: try row.text("name"), hasNew: try row.integer("new_count") > 0,
                        usesNew: try row.integer("new_use_count") > 0,
                        lastOldUse: try row.optionalTimestamp("old_used_at")))
            }
            for row in rows[1] {
                let (name, last) = (try row.text("name"), try row.timestamp("old_used_at"))
                if let index = websites.firstIndex(where: { $0.name == name }) {
                    websites[index].lastOldUse = max(websites[index].lastOldUse ?? last, last)
                } else if last > since {
                    websites.append(Unmoved(name: name, hasNew: true, usesNew: true, lastOldUse: last))
                }
            }
            return websites
        }
    }

    private static let readUnmoved = Statement(
        """
        SELECT w.name AS name, count(CASE WHEN k.issuer = :issuer THEN 1 END) AS new_count,
        count(CASE WHEN k.issuer = :issuer AND k.used_at IS NOT NULL THEN 1 END) AS new_use_count,
        max(CASE WHEN k.issuer = :issuer THEN NULL ELSE k.used_at END) AS old_used_at
        FROM website w JOIN website_key k ON k.website_id = w.id
        WHERE w.state <> 'removed' AND (k.ends_at IS NULL OR k.ends_at > :now)
        GROUP BY w.id, w.name HAVING count(CASE WHEN k.issuer = :issuer AND k.used_at IS NOT NULL THEN 1 END) = 0
        OR max(CASE WHEN k.issuer = :issuer THEN NULL ELSE k.used_at END) > :since
        ORDER BY name
        """)

    /// The last use of former certificates of keys that have a newer one.
    private static let readFormerUses = Statement(
        """
        SELECT w.name AS name, max(c.used_at) AS old_used_at FROM website_certificate c
        JOIN website_key k ON k.thumbprint = c.thumbprint JOIN website w ON w.id = k.website_id
        WHERE w.state <> 'removed' AND c.issuer <> :issuer AND c.used_at IS NOT NULL
        AND (k.ends_at IS NULL OR k.ends_at > :now) GROUP BY w.id, w.name ORDER BY name
        """, since: 3)
}
