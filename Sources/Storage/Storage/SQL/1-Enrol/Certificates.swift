import Crypto
import Domain
import Relay
import World

extension Store: CertificateStore {
    public func livingCertificates(
        of device: DeviceID, user: UserID, at now: Timestamp
    ) async throws(StoreFailure) -> LivingCertificates {
        let reads = [
            countOfPhone(device: .id(device), now: .timestamp(now)), countOfUser(user: .id(user), now: .timestamp(now)),
        ]
        return try await run(
            Query(script: Script("certificates", reads: reads)) { rows throws(StoreFailure) in
                guard let phone = rows[0].first, let user = rows[1].first else {
                    return LivingCertificates(count: 0, newest: nil, ofUser: 0, firstEnd: nil)
                }
                return LivingCertificates(
                    count: Int(try phone.integer("living")), newest: try phone.optionalTimestamp("newest"),
                    ofUser: Int(try user.integer("living")), firstEnd: try user.optionalTimestamp("first_end"))
            })
    }

    public func record(_ certificate: NewCertificate, as operation: Operation) async throws(StoreFailure) -> Bool {
        let (device, now) = (SQLValue.id(certificate.device), SQLValue.timestamp(certificate.at))
        let change = Change(
            "certificate", operation,
            [
                Locks.hold(user: .id(certificate.user)),
                markUser(
                    operation: .id(operation), user: .id(certificate.user), device: device, now: now,
                    most: .integer(Int64(certificate.most)),
                    mostOfUser: .integer(Int64(NewCertificate.mostOfUser)),
                    lately: .timestamp(certificate.at - NewCertificate.pause)),
                auditCertificate(
                    operation: .id(operation), now: now, device: device, user: .id(certificate.user)),
                CertificateRows.inserted(
                    .text(certificate.serial), of: device, until: .timestamp(certificate.expiresAt), at: now,
                    as: .id(operation)),
            ])
        return try await run(Query(change: change) { rows in rows.happened })
    }

    public func revokedCertificates(
        at now: Timestamp, limit: Int
    ) async throws(StoreFailure) -> RevokedCertificates {
        // Certificates that were revoked longer ago than a certificate is valid have expired.
        let since = now - .seconds(86_400 * (Relay.certificateDays + 1))
        let read = findRevoked(since: .timestamp(since), now: .timestamp(now), limit: .integer(Int64(limit)))
        return try await run(
            Query(script: Script("crl", reads: [read])) { rows in
                var found = RevokedCertificates()
                for row in rows[0].reversed() {
                    let serial = (try? row.text("serial")) ?? ""
                    guard RevokedCertificate.isSerial(serial), let at = try? row.timestamp("revoked_at"),
                        let isOnHold = try? row.bool("is_on_hold")
                    else {
                        found.malformed.append(serial)
                        continue
                    }
                    found.certificates.append(RevokedCertificate(serial: serial, at: at, isOnHold: isOnHold))
                }
                return found
            })
    }
}

/// Writes the user's row, so that this change conflicts with those that stop a phone of the user,
/// also at another node of a cluster. Otherwise the certificate could be recorded after its
/// revocation. `Locks.hold` precedes it, so requests at the same time are counted one by one.
private let markUser = Statement(
    """
    UPDATE user SET operation = :operation WHERE id = :user AND EXISTS
    (SELECT 1 FROM device d WHERE d.id = :device AND d.user_id = user.id AND d.state = 'active')
    AND ((SELECT count(*) FROM certificate c
    WHERE c.device_id = :device AND c.tag IS NULL AND c.expires_at > :now) < :most
    OR NOT EXISTS (SELECT 1 FROM certificate c
    WHERE c.device_id = :device AND c.tag IS NULL AND c.created_at > :lately))
    AND \(CertificateRows.userHasRoom)
    """)

private let countOfPhone = Statement(
    """
    SELECT count(*) AS living, max(created_at) AS newest FROM certificate
    WHERE device_id = :device AND tag IS NULL AND expires_at > :now
    """)

private let countOfUser = Statement(
    """
    SELECT count(*) AS living, min(c.expires_at) AS first_end FROM device d JOIN certificate c ON c.device_id = d.id
    WHERE d.user_id = :user AND c.expires_at > :now
    """)

private let auditCertificate = Statement.audit(
    """
    INSERT INTO audit (operation, at, event, website_id, user_id, device_id)
    SELECT :operation, :now, 'device.certificate', u.website_id, u.id, d.id
    FROM device d JOIN user u ON u.id = d.user_id
    WHERE d.id = :device AND d.state = 'active' AND u.id = :user AND u.operation = :operation
    \(Audit.once)
    """)

/// The revoked certificates, and those on hold because their user or website is stopped. A recorded
/// revocation comes first, so that no website that is disabled displaces it.
///
/// The time of a stop is that of the last operation on the row. The subquery of the disabled websites
/// has an order, so that all reads at all relays leave out the same certificates. The joins are ordered, because users
/// are rarely stopped: the index on their state finds few, whatever the number of certificates.
private let findRevoked = Statement(
    """
    SELECT serial, revoked_at, is_on_hold FROM (
    SELECT c.serial, c.revoked_at, c.is_on_hold, 2 AS priority FROM certificate c
    WHERE c.revoked_at > :since AND c.expires_at > :now
    UNION ALL
    SELECT c.serial, coalesce((SELECT a.at FROM audit a WHERE a.operation = u.operation), c.created_at), 1, 1
    FROM user u \(inOrder) device d ON d.user_id = u.id \(inOrder) certificate c ON c.device_id = d.id
    WHERE u.state IN ('locked', 'frozen', 'disabled') AND c.revoked_at IS NULL AND c.expires_at > :now
    UNION ALL
    SELECT c.serial, u.expires_at, 1, 1
    FROM user u \(inOrder) device d ON d.user_id = u.id \(inOrder) certificate c ON c.device_id = d.id
    WHERE u.expires_at <= :now AND u.state = 'active' AND c.revoked_at IS NULL AND c.expires_at > :now
    UNION ALL
    SELECT serial, stopped_at, 1, 0 FROM (
    SELECT c.serial, coalesce((SELECT a.at FROM audit a WHERE a.operation = w.operation), c.created_at) AS stopped_at
    FROM website w \(inOrder) user u ON u.website_id = w.id \(inOrder) device d ON d.user_id = u.id
    \(inOrder) certificate c ON c.device_id = d.id
    WHERE w.state = 'disabled' AND \(Guards.mayLogIn) AND c.revoked_at IS NULL AND c.expires_at > :now
    ORDER BY stopped_at DESC, c.serial DESC LIMIT :limit) AS stopped
    ) AS entry ORDER BY priority DESC, revoked_at DESC, serial DESC LIMIT :limit
    """)

/// A join whose left table is read first.
private let inOrder = "/*M! STRAIGHT_JOIN */ /*S! CROSS JOIN */"

/// The changes of certificates that follow a change of their phone or its user.
enum CertificateRows {
    /// The user has fewer certificates that have not expired, of all phones, than `:mostOfUser`.
    static let userHasRoom = """
        (SELECT count(*) FROM device p JOIN certificate c ON c.device_id = p.id
        WHERE p.user_id = :user AND c.expires_at > :now) < :mostOfUser
        """

    /// Records a certificate, after the audit row of its phone.
    ///
    /// - Parameter tagged: the tag and the thumbprint of the key; nil for the key that authenticates
    ///   the phone.
    static func inserted(
        _ serial: SQLValue, of device: SQLValue, tagged: (tag: SQLValue, thumbprint: SQLValue)? = nil,
        until expiresAt: SQLValue, at now: SQLValue, as operation: SQLValue
    ) -> BoundStatement {
        insertCertificate(
            serial: serial, device: device, tag: tagged?.tag ?? .null, thumbprint: tagged?.thumbprint ?? .null,
            now: now,
            expiresAt: expiresAt, operation: operation)
    }

    private static let insertCertificate = Statement(
        """
        INSERT INTO certificate (serial, device_id, tag, thumbprint, created_at, expires_at, revoked_at, is_on_hold)
        SELECT :serial, a.device_id, :tag, :thumbprint, :now, :expiresAt, NULL, 0 FROM audit a
        WHERE a.operation = :operation AND a.device_id = :device
        /*M! ON DUPLICATE KEY UPDATE serial = certificate.serial */ /*S! ON CONFLICT DO NOTHING */
        """)

    /// The statements for a change of a phone, after its audit row.
    static func steps(_ change: DeviceChange, as operation: Operation) -> [BoundStatement] {
        switch change.state {
        case .revoked where !change.isOfUnbound, .suspended:
            [
                revokeCertificates(
                    now: .timestamp(change.at), isOnHold: .bool(change.state == .suspended),
                    device: .id(change.device), operation: .id(operation))
            ]
        case .active where !change.isOfUnbound:
            [releaseCertificates(device: .id(change.device), operation: .id(operation))]
        case .revoked, .active, .waiting, nil: []
        }
    }

    /// A certificate that is on hold keeps the time of the first change. One that was replaced, and
    /// so is revoked for good, is never put on hold. MariaDB sets columns one after the other, so
    /// `is_on_hold` is set before `revoked_at`, whose old value it needs.
    private static let revokeCertificates = Statement(
        """
        UPDATE certificate SET
        is_on_hold = CASE WHEN revoked_at IS NOT NULL AND is_on_hold = 0 THEN 0 ELSE :isOnHold END,
        revoked_at = coalesce(revoked_at, :now)
        WHERE device_id = :device AND \(Guards.audited)
        """)

    private static let releaseCertificates = Statement(
        """
        UPDATE certificate SET revoked_at = NULL, is_on_hold = 0
        WHERE device_id = :device AND is_on_hold = 1 AND \(Guards.audited)
        """)

    /// Revokes the certificates of the user's other phones, which this one replaces.
    static let revokeOfOthers = Statement(
        """
        UPDATE certificate /*M! AS c JOIN device d ON d.id = c.device_id */
        SET revoked_at = coalesce(revoked_at, :now), is_on_hold = 0
        WHERE /*M! d.user_id = :user AND d.id <> :device */
        /*S! device_id IN (SELECT id FROM device WHERE user_id = :user AND id <> :device) */ AND \(Guards.audited)
        """)

    /// Revokes the certificates of a user who is deleted. It must precede the deletion of the
    /// phones.
    static let revokeOfUser = Statement(
        """
        UPDATE certificate /*M! AS c JOIN device d ON d.id = c.device_id */
        SET revoked_at = coalesce(revoked_at, :now), is_on_hold = 0
        WHERE /*M! d.user_id = :user */ /*S! device_id IN (SELECT id FROM device WHERE user_id = :user) */
        AND \(Guards.audited)
        """)
}
