import Domain
import Relay
import World

extension Store: BindStore {
    public func enrolment(of token: UserToken) async throws(StoreFailure) -> Enrolment? {
        try await run(
            Query(
                script: Script(
                    "enrolment", rows: [.user(token), .website(of: token)],
                    reads: [BoundStatement(enrolmentOfUser, .id(token))])
            ) { rows throws(StoreFailure) in
                guard let row = rows[0].first else { return nil }
                return Enrolment(user: try row.id(0), website: try row.website(1))
            })
    }

    public func progress(
        of device: DeviceID, user: UserID, code digest: [UInt8], binding: OperationID, at now: Timestamp
    ) async throws(StoreFailure) -> Progress {
        let script = Script(
            "progress", rows: [.user(user), .activation(digest), .device(device)],
            reads: [
                BoundStatement(userProgress, .timestamp(now), .id(user)),
                BoundStatement(codeProgress, .blob(digest), .id(user)),
                BoundStatement(phoneProgress, .id(device)), OperationSecrets.read(binding),
            ])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                let user = rows[0].first
                let code = rows[1].first
                let phone = rows[2].first
                return Progress(
                    isProved: try user?.optionalTimestamp(0) != nil, isAsked: try user?.bool(1) ?? false,
                    code: try code.map { row throws(StoreFailure) in
                        let usedAt = try row.optionalTimestamp(1)
                        return Progress.Code(
                            expiresAt: try row.timestamp(0), usedAt: usedAt,
                            usedBy: usedAt == nil ? nil : try row.id(2),
                            approval: try row.optionalWord(3))
                    },
                    phone: try phone.map { row throws(StoreFailure) in
                        Progress.Phone(
                            state: try row.word(0), approval: try row.optionalID(1),
                            revocation: try row.optionalBlob(2))
                    }, secret: try rows[3].operationSecret)
            })
    }

    public func bind(
        _ device: NewDevice, digest: [UInt8], slots: Int, secret: StoredSecret, as operation: Operation
    ) async throws(StoreFailure) -> BindOutcome {
        let now = SQLValue.timestamp(device.at)
        let (user, id) = (SQLValue.id(device.user), SQLValue.id(device.id))
        let code: [SQLValue] = [.blob(digest), user, now]
        let room: [SQLValue] = [user, id, now, .integer(Int64(slots))]
        let used: [SQLValue] = [.blob(digest), .id(operation), .id(operation)]
        let writes = [
            BoundStatement(markUserOfCode, values: [.id(operation), user] + code),
            BoundStatement(
                dropFailed,
                values: [
                    user, id, .timestamp(device.at - Relay.resultLifetime), Phones.stale(at: device.at), now,
                    .id(operation),
                ]),
            BoundStatement(
                useActivation,
                values: [now, .id(operation)] + code + [
                    .id(operation), .bool(device.state == .waiting), id, .blob(device.thumbprint), id,
                ] + room),
            BoundStatement(updateDevice, values: device.changes(operation) + [id] + used),
            BoundStatement(insertDevice, values: device.values(operation) + used),
            OperationSecrets.stored(secret, of: device.id, revocation: device.revocation, as: operation),
        ]
        let change = Change(
            "bind", operation,
            rows: [.user(device.user).signed, .activation(digest).signed, .device(device.id).signed]
                + AccountEventRows.rows(.deviceBound, as: operation),
            writes + device.bound(operation), reads: [BoundStatement(isFull, values: code + room)])
        return try await run(Query(change: change) { rows in rows.bindOutcome })
    }

    public func await(
        _ next: ChallengeID, insteadOf challenge: ChallengeID, device: DeviceID
    ) async throws(StoreFailure) -> Bool {
        // The script has no operation, because a repetition has the same result.
        let script = Script(
            "await", rows: [.device(device).signed],
            writes: [BoundStatement(awaitNext, .id(next), .id(device), .id(challenge))],
            reads: [BoundStatement(phoneProgress, .id(device))])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                guard let row = rows[0].first else { return false }
                return try row.optionalID(1) == next
            })
    }

    public func admit(
        _ admission: DeviceApproval, slots: Int, secret: StoredSecret, as operation: Operation
    ) async throws(StoreFailure) -> BindOutcome {
        let (user, id, challenge) = (
            SQLValue.id(admission.user), SQLValue.id(admission.device), SQLValue.id(admission.challenge)
        )
        let room: [SQLValue] = [user, id, .integer(Int64(slots))]
        let writes = [
            BoundStatement(markUser, .id(operation), user),
            BoundStatement(
                useApproval,
                values: [.id(operation), challenge, user, .blob(admission.approves), .id(operation), id] + room),
            BoundStatement(activatePhone, .blob(admission.revocation), .id(operation), id, challenge, .id(operation)),
            OperationSecrets.stored(secret, of: admission.device, revocation: admission.revocation, as: operation),
            BoundStatement(markUse, .timestamp(admission.at), .blob(admission.code), user, challenge, .id(operation)),
        ]
        let bound = BoundPhone.steps(admission.device, of: admission.user, at: admission.at, as: operation)
        let change = Change(
            "admit", operation,
            rows: [
                .user(admission.user).signed, .challenge(admission.challenge).signed, .device(admission.device).signed,
            ] + AccountEventRows.rows(.deviceBound, as: operation),
            writes + bound, reads: [BoundStatement(isFullOfActive, values: [challenge] + room)])
        return try await run(Query(change: change) { rows in rows.bindOutcome })
    }
}

extension BoundPhone {
    /// The statements after the change itself, for a phone that it has made active.
    fileprivate static func steps(
        _ device: DeviceID, of user: UserID, at now: Timestamp, as operation: Operation
    ) -> [BoundStatement] {
        [
            BoundStatement(auditDevice, .id(operation), .timestamp(now), .id(device), .id(operation)),
            BoundStatement(prove, .timestamp(now), .id(user), .id(operation)),
        ]
            + AccountEventRows.steps(
                .deviceBound, user: user, device: device, after: BoundPhone.event, at: now, as: operation)
    }
}

extension [Rows] {
    fileprivate var bindOutcome: BindOutcome { happened ? .done : self[1].isEmpty ? .refused : .full }
}

extension NewDevice {
    fileprivate func bound(_ operation: Operation) -> [BoundStatement] {
        BoundPhone.steps(id, of: user, at: at, as: operation)
    }
}

private let enrolmentOfUser = Statement(
    """
    SELECT u.id, w.id, w.name, w.display_name, w.policy FROM user u JOIN website w ON w.id = u.website_id
    WHERE u.token = ? AND w.state = 'active'
    """)

private let userProgress = Statement(
    """
    SELECT u.proved_at, EXISTS
    (SELECT 1 FROM challenge c WHERE c.user_id = u.id AND c.decided_at IS NULL AND c.expires_at > ?)
    FROM user u WHERE u.id = ?
    """)
private let codeProgress = Statement(
    "SELECT expires_at, used_at, operation, approval FROM activation WHERE digest = ? AND user_id = ?")
private let phoneProgress = Statement("SELECT state, approval, revocation FROM device WHERE id = ?")

private let isUsable = " a.digest = ? AND a.user_id = ? AND a.used_at IS NULL AND a.expires_at > ?"

/// Locks the user's row. A user who is being deleted then gets no phone that would remain, and two
/// phones at once are counted one after the other.
private let markUserOfCode = Statement(
    "UPDATE user SET operation = ? WHERE id = ? AND EXISTS (SELECT 1 FROM activation a WHERE" + isUsable + ")")

/// Deletes waiting phones that the user refused to approve or did not approve in time. Phones that
/// the user may still be asked about stay.
private let dropFailed = Statement(
    """
    DELETE FROM device WHERE user_id = ? AND id <> ? AND state = 'waiting' AND
    (push_token_at <= ?
    OR EXISTS (SELECT 1 FROM challenge c WHERE c.id = device.approval AND c.decided_at IS NOT NULL
    AND coalesce(c.decision, '') <> 'approve' AND coalesce(c.reason, '') NOT IN \(Phones.ofNobody))
    OR push_token_at <= ? AND NOT EXISTS (SELECT 1 FROM challenge c WHERE c.id = device.approval
    AND (coalesce(c.decision, '') = 'approve' OR c.decided_at IS NULL AND c.expires_at > ?)))
    AND EXISTS (SELECT 1 FROM user u WHERE u.id = device.user_id AND u.operation = ?)
    """)

/// The number of the user's other phones, by state.
private let others = " (SELECT count(*) FROM device o WHERE o.user_id = ? AND o.id <> ? AND o.state"
/// Counts the phones that hold a slot. A phone whose approval failed holds none.
private let held =
    others + """
         <> 'revoked' AND NOT EXISTS (SELECT 1 FROM challenge c WHERE c.id = o.approval
        AND coalesce(c.decision, '') <> 'approve' AND (c.decided_at IS NOT NULL OR c.expires_at <= ?)))
        """
private let hasRoom = held + " < ?"
private let hasNoRoom = held + " >= ?"

/// Uses the activation if all conditions of a binding hold. While a user is locked or frozen, only
/// an activation by an operator is accepted. A further phone needs an approval or waits for one. A
/// key belongs to one phone, which must be neither suspended nor unbound.
private let useActivation = Statement(
    """
    UPDATE activation SET used_at = ?, operation = ?
    WHERE digest = ? AND user_id = ? AND used_at IS NULL AND expires_at > ? AND EXISTS
    (SELECT 1 FROM user u WHERE u.id = activation.user_id AND u.operation = ?
    AND (u.state = 'active' OR activation.approval = 'operator')
    AND (? = 1 OR u.proved_at IS NULL OR activation.approval IS NOT NULL
    OR EXISTS (SELECT 1 FROM device d WHERE d.id = ? AND d.state = 'active')))
    AND NOT EXISTS
    (SELECT 1 FROM device d WHERE d.thumbprint = ? AND (d.id <> ? OR d.state IN ('suspended', 'revoked'))) AND
    """ + hasRoom)

/// The condition that this operation used the code and is not yet in the audit. A phone that sends
/// the same request again must not restore a phone that was revoked in between.
private let justUsed = """
     a.digest = ? AND a.operation = ? AND a.used_at IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM audit WHERE operation = ?)
    """

private let updateDevice = Statement(
    BoundPhone.changes + " AND EXISTS (SELECT 1 FROM activation a WHERE" + justUsed + ")")
private let insertDevice = Statement(
    into: .device, once: true,
    BoundPhone.insertion + " SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, a.user_id, 0 FROM activation a WHERE"
        + justUsed)

private let auditDevice = Statement(
    Audit.columns + """
         SELECT ?, ?, CASE d.state WHEN 'active' THEN 'device.bound' ELSE 'device.waiting' END, u.website_id, u.id,
        d.approval, d.id, NULL, NULL FROM device d JOIN user u ON u.id = d.user_id WHERE d.id = ? AND d.operation = ?
        """ + Audit.once)

/// Records that the user has proved a factor. After the first phone with a key, each further one
/// needs the user's approval.
private let prove = Statement(
    """
    UPDATE user SET proved_at = ? WHERE id = ? AND proved_at IS NULL AND EXISTS
    (SELECT 1 FROM audit WHERE operation = ? AND event = 'device.bound')
    """)

private let isFull = Statement("SELECT 1 FROM activation a WHERE" + isUsable + " AND" + hasNoRoom)

private let awaitNext = Statement(
    "UPDATE device SET approval = ? WHERE id = ? AND state = 'waiting' AND approval = ?")

private let markUser = Statement("UPDATE user SET operation = ? WHERE id = ?")

private let useApproval = Statement(
    """
    UPDATE challenge SET used_by = ?
    WHERE id = ? AND user_id = ? AND approves = ? AND decision = 'approve' AND used_by IS NULL AND EXISTS
    (SELECT 1 FROM user u WHERE u.id = challenge.user_id AND u.operation = ? AND u.state = 'active') AND EXISTS
    (SELECT 1 FROM device d WHERE d.id = ? AND d.state = 'waiting' AND d.approval = challenge.id) AND
    """ + others + " IN ('active', 'suspended')) < ?")

private let activatePhone = Statement(
    """
    UPDATE device SET state = 'active', approval = NULL, revocation = ?, operation = ?
    WHERE id = ? AND state = 'waiting' AND EXISTS (SELECT 1 FROM challenge c WHERE c.id = ? AND c.used_by = ?)
    """)

/// The code of a phone that had to wait is now used. From now on its result is kept as long as that
/// of any other code.
private let markUse = Statement(
    """
    UPDATE activation SET used_at = ? WHERE digest = ? AND user_id = ? AND used_at IS NOT NULL
    AND EXISTS (SELECT 1 FROM challenge c WHERE c.id = ? AND c.used_by = ?)
    """)

private let isFullOfActive = Statement(
    "SELECT 1 FROM challenge c WHERE c.id = ? AND c.used_by IS NULL AND" + others + " IN ('active', 'suspended')) >= ?")
