import Crypto
import Domain
import Relay
import World

extension Store: TaggedCertificateStore {
    public func record(
        _ new: NewTaggedCertificate, as operation: Operation
    ) async throws(StoreFailure) -> TaggedCertificateOutcome {
        let (certificate, phone) = (new.certificate, new.phone)
        let (device, tag, own) = (SQLValue.id(phone.id), SQLValue.text(certificate.tag), SQLValue.id(operation))
        let (user, now) = (SQLValue.id(phone.user), SQLValue.timestamp(certificate.createdAt))
        let (serial, expiresAt) = (SQLValue.text(certificate.serial), SQLValue.timestamp(certificate.expiresAt))
        let thumbprint = SQLValue.blob(new.key.spkiThumbprint)
        let purpose = UsedKeys.purpose(of: certificate.tag, isRaw: certificate.isRaw)
        let change = Change(
            "tag", operation,
            rows: [.user(phone.user).signed, .device(phone.id), .tagged(phone.id, certificate.tag).signed]
                + AccountEventRows.rows(.deviceCertified, as: operation),
            [
                Locks.hold(user: user),
                markUser(
                    operation: own, user: user, device: device, key: .blob(phone.key), thumbprint: thumbprint,
                    purpose: .text(purpose), tag: tag, asked: .timestamp(certificate.askedAt), now: now,
                    most: .integer(Int64(NewTaggedCertificate.most)),
                    lately: .timestamp(certificate.createdAt - NewCertificate.pause),
                    mostOfUser: .integer(Int64(NewCertificate.mostOfUser))),
                auditTagged(
                    operation: own, now: now, device: device, tag: tag, user: user, thumbprint: thumbprint),
                UsedKeys.recorded(thumbprint, purpose, of: device, as: own),
                revokeReplaced(now: now, device: device, tag: tag, thumbprint: thumbprint, operation: own),
                CertificateRows.inserted(
                    serial, of: device, tagged: (tag, thumbprint), until: expiresAt, at: now, as: own),
            ]
                + [updateTagged, insertTagged].map {
                    $0(
                        isRaw: .bool(certificate.isRaw), serial: serial, thumbprint: thumbprint,
                        pem: .text(certificate.pem), asked: .timestamp(certificate.askedAt), now: now,
                        expiresAt: expiresAt, device: device, tag: tag,
                        user: user, operation: own)
                }
                + AccountEventRows.steps(
                    .deviceCertified, user: phone.user, device: phone.id, after: TaggedCertificates.event,
                    at: certificate.createdAt, as: operation),
            reads: TaggedCertificates.reads(new))
        return try await run(
            Query(change: change) { rows throws(StoreFailure) in
                guard !rows.happened else { return .done }
                return try TaggedCertificates.refusal(of: new, rows.dropFirst())
            })
    }

    public func check(_ new: NewTaggedCertificate) async throws(StoreFailure) -> TaggedCertificateOutcome {
        let (certificate, phone) = (new.certificate, new.phone)
        let guarded = mayBeRecorded(
            user: .id(phone.user), device: .id(phone.id), key: .blob(phone.key),
            thumbprint: .blob(new.key.spkiThumbprint),
            purpose: .text(UsedKeys.purpose(of: certificate.tag, isRaw: certificate.isRaw)),
            tag: .text(certificate.tag), asked: .timestamp(certificate.askedAt),
            now: .timestamp(certificate.createdAt), most: .integer(Int64(NewTaggedCertificate.most)),
            lately: .timestamp(certificate.createdAt - NewCertificate.pause),
            mostOfUser: .integer(Int64(NewCertificate.mostOfUser)))
        let script = Script(
            "tag",
            rows: [.user(phone.user).signed, .device(phone.id), .tagged(phone.id, certificate.tag).signed],
            reads: [guarded] + TaggedCertificates.reads(new))
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                guard rows[0].isEmpty else { return .done }
                return try TaggedCertificates.refusal(of: new, rows.dropFirst())
            })
    }

    public func taggedCertificates(of user: UserID) async throws(StoreFailure) -> [TaggedCertificate] {
        try await run(TaggedCertificates.all(of: user))
    }

    public func signer(
        _ device: DeviceID, tag: String, of website: WebsiteID, at now: Timestamp
    ) async throws(StoreFailure) -> DocumentSigner? {
        let script = Script(
            "signer", rows: [.user(owning: device), .device(device), .tagged(device, tag)],
            reads: [signerOfWebsite(device: .id(device), tag: .text(tag), website: .id(website), now: .timestamp(now))])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                try rows[0].first.map { row throws(StoreFailure) in
                    DocumentSigner(
                        username: try row.text("username"), state: try row.word("user_state"),
                        certificate: try TaggedCertificates.read(row),
                        isRevoked: try row.bool("is_revoked"), isEnrolmentKey: try row.bool("is_enrolment_key"))
                }
            })
    }
}

/// The rows of tagged certificates.
public enum TaggedCertificates {
    /// The event in the audit for a new key.
    static let event = "device.certified"
    /// The event in the audit for another certificate of the same key. Nobody is told of it.
    static let renewal = "device.recertified"

    /// The columns of the alias `t`.
    static let columns = """
        t.device_id AS tagged_device_id, t.tag AS tagged_tag, t.is_raw AS tagged_is_raw, t.serial AS tagged_serial,
        t.certificate AS tagged_certificate, t.asked_at AS tagged_asked_at, t.created_at AS tagged_created_at,
        t.expires_at AS tagged_expires_at
        """

    static func read(_ row: Row) throws(StoreFailure) -> TaggedCertificate {
        TaggedCertificate(
            device: try row.id("tagged_device_id"), tag: try row.text("tagged_tag"),
            isRaw: try row.bool("tagged_is_raw"), serial: try row.text("tagged_serial"),
            pem: try row.text("tagged_certificate"), askedAt: try row.timestamp("tagged_asked_at"),
            createdAt: try row.timestamp("tagged_created_at"), expiresAt: try row.timestamp("tagged_expires_at"))
    }

    /// The reads that tell why a certificate may not be recorded.
    fileprivate static func reads(_ new: NewTaggedCertificate) -> [BoundStatement] {
        let (device, tag) = (SQLValue.id(new.phone.id), SQLValue.text(new.certificate.tag))
        let now = SQLValue.timestamp(new.certificate.createdAt)
        return [
            activePhone(device: device, key: .blob(new.phone.key), now: now),
            livingOfTag(device: device, tag: tag, user: .id(new.phone.user), now: now),
            askedOfTag(device: device, tag: tag, asked: .timestamp(new.certificate.askedAt)),
        ]
    }

    /// Returns why a certificate may not be recorded, from the rows of `reads`.
    fileprivate static func refusal(
        of new: NewTaggedCertificate, _ rows: ArraySlice<Rows>
    ) throws(StoreFailure) -> TaggedCertificateOutcome {
        let (phone, living, asked) = (rows.startIndex, rows.startIndex + 1, rows.startIndex + 2)
        guard let row = rows[phone].first else { return .gone }
        let state: UserState = try row.word("state")
        guard state == .active else { return .barred(state) }
        if !rows[asked].isEmpty { return .replayed }
        guard let living = rows[living].first else { return .usedKey }
        if try living.integer("of_user") >= NewCertificate.mostOfUser,
            let end = try living.optionalTimestamp("first_end")
        {
            return .full(until: end)
        }
        if try living.integer("living") >= NewTaggedCertificate.most,
            let newest = try living.optionalTimestamp("newest"),
            newest + NewCertificate.pause > new.certificate.createdAt
        {
            return .full(until: newest + NewCertificate.pause)
        }
        return .usedKey
    }

    /// Reads the tagged certificates of all phones of a user, for the verbs and the operator's tool.
    public static func all(of user: UserID) -> Query<[TaggedCertificate]> {
        let script = Script("certificates", rows: [.tagged(of: user)], reads: [taggedOfUser(user: .id(user))])
        return Query(script: script) { rows throws(StoreFailure) in
            var all: [TaggedCertificate] = []
            for row in rows[0] { all.append(try read(row)) }
            return all
        }
    }

    private static let taggedOfUser = Statement(
        "SELECT \(columns) FROM tagged_certificate t WHERE t.user_id = :user ORDER BY t.device_id, t.tag")

    /// Deletes the tagged certificates of a phone that was unbound. Their serial numbers stay on the
    /// revocation list.
    static func dropped(with device: DeviceID, as operation: Operation) -> BoundStatement {
        dropOfDevice(device: .id(device), operation: .id(operation))
    }

    private static let dropOfDevice = Statement(
        "DELETE FROM tagged_certificate WHERE device_id = :device AND \(Guards.audited)")

    /// Deletes the tagged certificates of the user's other phones, which one phone replaces.
    static func droppedOfOthers(than device: DeviceID, of user: UserID, as operation: Operation) -> BoundStatement {
        dropOfOthers(user: .id(user), device: .id(device), operation: .id(operation))
    }

    private static let dropOfOthers = Statement(
        "DELETE FROM tagged_certificate WHERE user_id = :user AND device_id <> :device AND \(Guards.audited)")
}

/// The condition on the user `:user`, for a certificate of an active phone whose user may log in. The
/// key must never have had another purpose: neither an enrolment nor another tag, nor the same tag
/// with another mark, nor the sealing of secrets. The request must be later than the one before, so
/// that nobody brings a replaced key back.
private let isPermitted = """
    id = :user AND \(Guards.userMayLogIn) AND EXISTS
    (SELECT 1 FROM device d WHERE d.id = :device AND d.user_id = user.id AND d.thumbprint = :key
    AND d.state = 'active')
    AND NOT EXISTS (SELECT 1 FROM device o WHERE o.thumbprint = :thumbprint) AND \(UsedKeys.isFreeForTag)
    AND NOT EXISTS
    (SELECT 1 FROM tagged_certificate t WHERE t.device_id = :device AND t.tag = :tag AND t.asked_at >= :asked)
    AND ((SELECT count(*) FROM certificate c
    WHERE c.device_id = :device AND c.tag = :tag AND c.expires_at > :now) < :most
    OR NOT EXISTS (SELECT 1 FROM certificate c
    WHERE c.device_id = :device AND c.tag = :tag AND c.created_at > :lately))
    AND \(CertificateRows.userHasRoom)
    """

/// Marks the row of the user.
private let markUser = Statement("UPDATE user SET operation = :operation WHERE \(isPermitted)")

private let mayBeRecorded = Statement("SELECT 1 FROM user WHERE \(isPermitted)")

private let auditTagged = Statement.audit(
    """
    INSERT INTO audit (operation, at, event, website_id, user_id, device_id, outcome)
    SELECT :operation, :now, CASE WHEN EXISTS (SELECT 1 FROM tagged_certificate t
    WHERE t.device_id = :device AND t.tag = :tag AND t.thumbprint = :thumbprint)
    THEN '\(TaggedCertificates.renewal)' ELSE '\(TaggedCertificates.event)' END, u.website_id, u.id, :device, :tag
    FROM user u
    WHERE u.id = :user AND u.operation = :operation
    \(Audit.once)
    """)

/// Revokes all certificates of this phone and tag for other keys. Those for the same key stay valid
/// until they expire, because documents that the key signed are still checked with them.
private let revokeReplaced = Statement(
    """
    UPDATE certificate SET revoked_at = coalesce(revoked_at, :now)
    WHERE device_id = :device AND tag = :tag AND thumbprint <> :thumbprint AND \(Guards.audited)
    """)

/// Counts the certificates of a phone and tag, and of the user, that have not expired, revoked or
/// not: all of them are or may come on the revocation list.
private let livingOfTag = Statement(
    """
    SELECT count(*) AS of_user, min(c.expires_at) AS first_end,
    count(CASE WHEN c.device_id = :device AND c.tag = :tag THEN 1 END) AS living,
    max(CASE WHEN c.device_id = :device AND c.tag = :tag THEN c.created_at END) AS newest
    FROM device d JOIN certificate c ON c.device_id = d.id WHERE d.user_id = :user AND c.expires_at > :now
    """)

private let updateTagged = Statement(
    """
    UPDATE tagged_certificate SET is_raw = :isRaw, serial = :serial, thumbprint = :thumbprint, certificate = :pem,
    asked_at = :asked, created_at = :now, expires_at = :expiresAt, user_id = :user
    WHERE device_id = :device AND tag = :tag AND \(Guards.audited)
    """)

private let insertTagged = Statement(
    into: .taggedCertificate, once: true,
    """
    INSERT INTO tagged_certificate
    (device_id, tag, user_id, is_raw, serial, thumbprint, certificate, asked_at, created_at, expires_at)
    SELECT a.device_id, :tag, :user, :isRaw, :serial, :thumbprint, :pem, :asked, :now, :expiresAt FROM audit a
    WHERE a.operation = :operation AND a.device_id = :device AND NOT EXISTS
    (SELECT 1 FROM tagged_certificate t WHERE t.device_id = :device AND t.tag = :tag)
    """)

private let askedOfTag = Statement(
    "SELECT 1 FROM tagged_certificate t WHERE t.device_id = :device AND t.tag = :tag AND t.asked_at >= :asked")

private let activePhone = Statement(
    """
    SELECT \(Guards.userState) AS state FROM device d JOIN user u ON u.id = d.user_id
    WHERE d.id = :device AND d.thumbprint = :key AND d.state = 'active'
    """)

private let signerOfWebsite = Statement(
    """
    SELECT \(TaggedCertificates.columns), u.username, \(Guards.userState) AS user_state,
    EXISTS (SELECT 1 FROM certificate c WHERE c.serial = t.serial AND c.revoked_at IS NOT NULL) AS is_revoked,
    EXISTS (SELECT 1 FROM device o WHERE o.thumbprint = t.thumbprint) AS is_enrolment_key
    FROM tagged_certificate t JOIN device d ON d.id = t.device_id JOIN user u ON u.id = d.user_id
    WHERE t.device_id = :device AND t.tag = :tag AND t.user_id = u.id AND d.state = 'active' AND u.website_id = :website
    """)

/// The searches for tagged certificates.
extension SignedRows {
    static func tagged(_ device: DeviceID, _ tag: String) -> SignedRows {
        taggedOfDevice(device: .id(device), tag: .text(tag))
    }

    private static let taggedOfDevice = RowSearch(.taggedCertificate, where: "device_id = :device AND tag = :tag")

    static func tagged(of user: UserID) -> SignedRows { taggedOfUserRows(user: .id(user)) }

    private static let taggedOfUserRows = RowSearch(.taggedCertificate, where: "user_id = :user")

    static func user(owning device: DeviceID) -> SignedRows { userOfDevice(device: .id(device)) }

    private static let userOfDevice = RowSearch(
        .user, where: "id = (SELECT d.user_id FROM device d WHERE d.id = :device)")
}
