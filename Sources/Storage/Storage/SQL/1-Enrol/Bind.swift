import Domain
import Relay
import World

extension Store: BindStore {
    public func enrolment(of token: UserToken) async throws(StoreFailure) -> Enrolment? {
        try await run(
            Query(
                script: Script(
                    "enrolment", rows: [.user(token), .website(of: token)],
                    reads: [enrolmentOfUser(token: .id(token))])
            ) { rows throws(StoreFailure) in
                guard let row = rows[0].first else { return nil }
                return Enrolment(user: try row.id("user_id"), website: try WebsiteColumns.read(row))
            })
    }
}

private let enrolmentOfUser = Statement(
    """
    SELECT u.id AS user_id, \(WebsiteColumns.list)
    FROM user u JOIN website w ON w.id = u.website_id WHERE u.token = :token AND w.state = 'active'
    """)

extension Store {
    public func progress(
        of device: DeviceID, user: UserID, code digest: [UInt8], binding: OperationID, at now: Timestamp
    ) async throws(StoreFailure) -> Progress {
        let script = Script(
            "progress", rows: [.user(user), .activation(digest), .device(device)],
            reads: [
                userProgress(now: .timestamp(now), user: .id(user)),
                codeProgress(digest: .blob(digest), user: .id(user)),
                phoneProgress(device: .id(device)), OperationSecrets.read(binding),
            ])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                let user = rows[0].first
                let code = rows[1].first
                let phone = rows[2].first
                return Progress(
                    isProved: try user?.optionalTimestamp("proved_at") != nil,
                    isAsked: try user?.bool("is_asked") ?? false,
                    code: try code.map { row throws(StoreFailure) in
                        let usedAt = try row.optionalTimestamp("used_at")
                        return Progress.Code(
                            expiresAt: try row.timestamp("expires_at"), usedAt: usedAt,
                            usedBy: usedAt == nil ? nil : try row.id("operation"),
                            approval: try row.optionalWord("approval"))
                    },
                    phone: try phone.map { row throws(StoreFailure) in
                        Progress.Phone(
                            state: try row.word("state"), platform: try row.word("platform"),
                            approval: try row.optionalID("approval"),
                            revocation: try row.optionalBlob("revocation"))
                    }, secret: try rows[3].operationSecret)
            })
    }
}

private let userProgress = Statement(
    """
    SELECT u.proved_at, EXISTS
    (SELECT 1 FROM challenge c WHERE c.user_id = u.id AND c.decided_at IS NULL AND c.expires_at > :now) AS is_asked
    FROM user u WHERE u.id = :user
    """)

private let codeProgress = Statement(
    "SELECT expires_at, used_at, operation, approval FROM activation WHERE digest = :digest AND user_id = :user")

private let phoneProgress = Statement(
    "SELECT state, platform, approval, revocation FROM device WHERE id = :device")

extension Store {
    public func bind(
        _ device: NewDevice, digest: [UInt8], slots: Int, secret: StoredSecret, as operation: Operation
    ) async throws(StoreFailure) -> BindOutcome {
        guard device.page == nil || schemaVersion >= 3 else {
            throw .mismatched(
                "the tables have the version \(schemaVersion), and pages that are phones need 3",
                remedy: "Run 'twoefay migrate', then restart the relays.")
        }
        let (user, id, now) = (SQLValue.id(device.user), SQLValue.id(device.id), SQLValue.timestamp(device.at))
        let writes = [
            markUserOfCode(operation: .id(operation), user: user, digest: .blob(digest), now: now),
            dropFailed(
                user: user, device: id, keptSince: .timestamp(device.at - Relay.resultLifetime),
                stale: Phones.stale(at: device.at), now: now, operation: .id(operation)),
            useActivation(
                now: now, operation: .id(operation), digest: .blob(digest), user: user,
                isWaiting: .bool(device.state == .waiting), device: id, thumbprint: .blob(device.thumbprint),
                agreementThumbprint: .blob(device.agreementThumbprint), isPage: .bool(device.platform == .web),
                slots: .integer(Int64(slots))),
            device.updated(code: digest, as: operation), device.inserted(code: digest, as: operation),
        ]
        let later =
            UsedKeys.recorded(of: device, as: operation) + WebPhoneRows.inserted(device, as: operation) + [
                AttestationRows.dropReplaced(device.id, as: operation), AttestationRows.inserted(device, as: operation),
                AttestationRows.dropOrphans(of: device.user), WebPhoneRows.dropOrphans(of: device.user),
                DeviceReports.droppedAtBinding(of: device.id, as: operation),
                OperationSecrets.stored(secret, of: device.id, revocation: device.revocation, as: operation),
            ]
        var rows: [SignedRows] = [.user(device.user).signed, .activation(digest).signed, .device(device.id).signed]
        rows += [.attestation(of: device.id).lenient] + WebPhoneRows.rows(of: device)
        rows += AccountEventRows.rows(.deviceBound, as: operation)
        var bound = BoundPhone.steps(device.id, of: device.user, at: device.at, as: operation)
        if device.replacesOthers {
            rows += Recoveries.rows(replacingPhonesOf: device.user, at: device.at, as: operation)
            bound += Recoveries.phonesReplaced(by: device.id, of: device.user, at: device.at, as: operation)
        }
        let change = Change(
            "bind", operation, rows: rows, writes + later + bound,
            reads: [
                isFull(digest: .blob(digest), user: user, now: now, device: id, slots: .integer(Int64(slots)))
            ])
        return try await run(Query(change: change) { rows in rows.bindOutcome })
    }
}

/// Locks the user's row. A user who is being deleted then gets no phone that would remain, and two
/// phones at once are counted one after the other.
private let markUserOfCode = Statement(
    """
    UPDATE user SET operation = :operation WHERE id = :user AND EXISTS (SELECT 1 FROM activation a WHERE \(isUsable))
    """)

private let isUsable = "a.digest = :digest AND a.user_id = :user AND a.used_at IS NULL AND a.expires_at > :now"

/// Deletes waiting phones that the user refused to approve or did not approve in time. Phones that
/// the user may still be asked about stay.
private let dropFailed = Statement(
    """
    DELETE FROM device WHERE user_id = :user AND id <> :device AND state = 'waiting' AND
    (push_token_at <= :keptSince
    OR EXISTS (SELECT 1 FROM challenge c WHERE c.id = device.approval AND c.decided_at IS NOT NULL
    AND coalesce(c.decision, '') <> 'approve' AND coalesce(c.reason, '') NOT IN \(Phones.ofNobody))
    OR push_token_at <= :stale AND NOT EXISTS (SELECT 1 FROM challenge c WHERE c.id = device.approval
    AND (coalesce(c.decision, '') = 'approve' OR c.decided_at IS NULL AND c.expires_at > :now)))
    AND EXISTS (SELECT 1 FROM user u WHERE u.id = device.user_id AND u.operation = :operation)
    """)

/// Uses the activation if all conditions of a binding hold. While a user is locked, frozen or
/// expired, only an activation by an operator is accepted; while a user is disabled, none is. A
/// further phone needs an approval or waits for one. A phone that replaces all others needs no free
/// slot, but the recovery that has created its code must still be ready. A key belongs to one phone,
/// which must be neither suspended nor unbound, and has no other purpose. A page stays a page, and no
/// other phone becomes one: the word of each is worth something else.
private let useActivation = Statement(
    """
    UPDATE activation SET used_at = :now, operation = :operation
    WHERE digest = :digest AND user_id = :user AND used_at IS NULL AND expires_at > :now AND EXISTS
    (SELECT 1 FROM user u WHERE u.id = activation.user_id AND u.operation = :operation
    AND (\(Guards.mayLogIn) OR activation.approval = 'operator' AND u.state <> 'disabled')
    AND (activation.approval <> 'recovery' OR activation.approval IS NULL OR EXISTS (SELECT 1 FROM recovery r
    WHERE r.id = activation.recovery_id AND r.user_id = u.id AND r.factor = 'push' AND r.state = 'proved'
    AND r.ready_at <= :now AND r.announced_at IS NOT NULL AND r.expires_at > :now))
    AND (:isWaiting = 1 OR u.proved_at IS NULL OR activation.approval IS NOT NULL
    OR EXISTS (SELECT 1 FROM device d WHERE d.id = :device AND d.state = 'active')))
    AND NOT EXISTS
    (SELECT 1 FROM device d
    WHERE d.thumbprint = :thumbprint AND (d.id <> :device OR d.state IN ('suspended', 'revoked')
    OR CASE WHEN d.platform = 'web' THEN 1 ELSE 0 END <> :isPage))
    AND \(UsedKeys.areFreeForPhone)
    AND (activation.approval = 'recovery' OR \(heldSlots) < :slots)
    """)

/// Counts the other phones that hold a slot. A phone whose approval failed holds none.
private let heldSlots = """
    \(BoundPhone.countOfOthers) AND o.state <> 'revoked'
    AND NOT EXISTS (SELECT 1 FROM challenge c WHERE c.id = o.approval
    AND coalesce(c.decision, '') <> 'approve' AND (c.decided_at IS NOT NULL OR c.expires_at <= :now)))
    """

private let isFull = Statement("SELECT 1 FROM activation a WHERE \(isUsable) AND \(heldSlots) >= :slots")

extension NewDevice {
    fileprivate func updated(code digest: [UInt8], as operation: Operation) -> BoundStatement {
        updateDevice(
            name: .text(name), platform: .word(platform), environment: .word(environment),
            pushToken: .pushToken(pushToken),
            now: .timestamp(at), agreementKey: .blob(agreementKey), revocation: .blob(revocation),
            binding: .text(binding), approval: .id(approval),
            state: .word(state), operation: .id(operation), device: .id(id), digest: .blob(digest))
    }

    fileprivate func inserted(code digest: [UInt8], as operation: Operation) -> BoundStatement {
        insertDevice(
            device: .id(id), name: .text(name), platform: .word(platform), environment: .word(environment),
            pushToken: .pushToken(pushToken), now: .timestamp(at), publicKey: .blob(publicKey),
            thumbprint: .blob(thumbprint), agreementKey: .blob(agreementKey), revocation: .blob(revocation),
            binding: .text(binding),
            approval: .id(approval), operation: .id(operation), state: .word(state), digest: .blob(digest))
    }
}

private let updateDevice = Statement(
    "\(BoundPhone.update) AND EXISTS (SELECT 1 FROM activation a WHERE \(isJustUsed))")

private let insertDevice = Statement(
    into: .device, once: true, "\(BoundPhone.insert) a.user_id, 0 FROM activation a WHERE \(isJustUsed)")

/// The condition that this operation used the code and is not yet in the audit. A phone that sends
/// the same request again must not restore a phone that was revoked in between.
private let isJustUsed =
    "a.digest = :digest AND a.operation = :operation AND a.used_at IS NOT NULL AND NOT \(Guards.audited)"
