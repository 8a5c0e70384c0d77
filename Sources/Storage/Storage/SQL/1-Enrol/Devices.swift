import Domain
import Relay
import World

extension Store: DeviceStore {
    public func device(
        _ id: DeviceID, ofUser username: String, of website: WebsiteID, at now: Timestamp
    ) async throws(StoreFailure) -> OwnedDevice? {
        try await run(
            Phones.find(BoundStatement(deviceOfUser, .id(id), .id(website), .text(username), Phones.stale(at: now))))
    }

    public func device(revocation digest: [UInt8]) async throws(StoreFailure) -> (id: DeviceID, user: UserID)? {
        try await run(
            Query(script: Script("device", reads: [BoundStatement(deviceByRevocation, .blob(digest))])) {
                rows throws(StoreFailure) in
                guard let row = rows[0].first else { return nil }
                return (try row.id(0), try row.id(1))
            })
    }

    public func change(_ change: DeviceChange, as operation: Operation) async throws(StoreFailure) -> [ChallengeID]? {
        try await run(Phones.change(change, as: operation))
    }
}

/// The queries about phones, for the verbs and the operator's tool.
public enum Phones {
    /// Finds a phone of any website by its id, for the operator.
    public static func any(_ id: DeviceID) -> Query<OwnedDevice?> { find(BoundStatement(deviceByID, .id(id))) }

    /// Reads a phone without a check of its row, because any phone can be stopped, even if its row
    /// is not genuine. A change that gives rights to a phone checks the row itself.
    fileprivate static func find(_ step: BoundStatement) -> Query<OwnedDevice?> {
        Query(script: Script("device", reads: [step])) { rows throws(StoreFailure) in
            guard let row = rows[0].first else { return nil }
            return OwnedDevice(user: try row.id(9), view: try row.device(0), stoppedBy: try row.optionalWord(10))
        }
    }

    /// Changes a phone. The answer has the challenges that ended with the change; it is nil if the
    /// guards refused the change.
    public static func change(_ change: DeviceChange, as operation: Operation) -> Query<[ChallengeID]?> {
        let now = SQLValue.timestamp(change.at)
        let mine: [SQLValue] = [.id(change.user), .id(operation)]
        let givesBack = change.isOfUnbound && change.state == .active
        let undoesOperator = change.isOfUnbound ? givesBack : change.by == .operator || change.state != .active
        var states = change.from.map { SQLValue.text($0.rawValue) }
        while states.count < 3 { states.append(.null) }
        var writes = [
            BoundStatement(markUser, .id(operation), .id(change.user)),
            BoundStatement(
                changeDevice,
                values: [
                    .text(change.name), .text(change.pushToken), change.pushToken == nil ? .null : now,
                    .bool(change.state == .active), .word(change.isUnbinding || change.isOfUnbound ? change.by : nil),
                    .word(change.isOfUnbound ? nil : change.state), .id(operation), .id(change.device),
                ] + states + [.bool(undoesOperator), .bool(givesBack)] + mine),
            BoundStatement(
                auditDevice, .id(operation), now, .text("\(change.event)"), .word(change.by), .id(change.device),
                .id(operation)),
        ]
        if change.isUnbinding { writes += farewell(change, as: operation) }
        if change.state == .revoked, !change.isOfUnbound {
            writes += AccountEventRows.steps(
                .deviceUnbound, user: change.user, device: change.device, after: "\(change.event)", at: change.at,
                as: operation)
        }
        let reads = [BoundStatement(endedApprovals, values: mine)]
        let rows = rows(of: change, as: operation)
        return Query(change: Change("device", operation, rows: rows, writes, reads: reads)) {
            rows throws(StoreFailure) in
            guard rows.happened else { return nil }
            var ended: [ChallengeID] = []
            for row in rows[1] { ended.append(try row.id(0)) }
            return ended
        }
    }

    /// The rows that a change of a phone writes. A phone can be stopped even if its row is not
    /// genuine. The user's row comes first, because other changes of the user wait for it.
    private static func rows(of change: DeviceChange, as operation: Operation) -> [SignedRows] {
        let (user, device) = (SignedRows.user(change.user), SignedRows.device(change.device))
        guard change.state == .revoked || change.state == .suspended else { return [user.signed, device.signed] }
        var rows = [user.lenient, device.lenient]
        if change.isUnbinding {
            rows += Locks.rows(ending: change.user, at: change.at, as: operation)
            rows += UnusedApprovals.rows(of: change.user)
        }
        return change.state == .revoked ? rows + AccountEventRows.rows(.deviceUnbound, as: operation) : rows
    }

    /// Deletes the phone's pushes, and ends all approvals and waiting phones that it may have
    /// approved. Somebody who had the phone must not keep access with another one.
    private static func farewell(_ change: DeviceChange, as operation: Operation) -> [BoundStatement] {
        let (user, now, done) = (SQLValue.id(change.user), SQLValue.timestamp(change.at), SQLValue.id(operation))
        return [
            BoundStatement(dropPushes, user, .id(change.device), done),
            Steps.giveUpPushes(to: change.user, at: change.at, by: operation),
            CascadeSteps.makeDue(of: change.user, at: change.at, by: operation),
            BoundStatement(endApprovals, now, done, user, now, done),
            Steps.skip(of: change.user, at: change.at, by: operation),
            BoundStatement(dropEntriesOfApprovals, user, done),
            LoginDecidedRows.insertLoginDecided(of: change.user, at: change.at, as: operation),
            Locks.auditEnded(change.user, .cancelled, at: change.at, as: operation),
        ] + UnusedApprovals.ended(of: change.user, but: change.device, by: done)
    }

    /// The columns of `device` that its website sees.
    static let columns = "id, name, platform, state, public_key, binding, created_at, last_seen_at, push_token"

    /// The condition for phones that exist for the website: all except those whose approval failed.
    /// The next binding of the user deletes the latter. It takes one value, `stale`.
    static let isThere = """
         NOT (state = 'waiting' AND EXISTS (SELECT 1 FROM challenge c WHERE c.id = device.approval
        AND c.decided_at IS NOT NULL AND coalesce(c.decision, '') <> 'approve'
        AND (coalesce(c.reason, '') NOT IN \(ofNobody) OR device.push_token_at <= ?)))
        """

    /// The reasons with which an approval ends without a refusal. The user is asked again while the
    /// phone's activation code is valid.
    static let ofNobody = "('superseded', 'expired')"

    /// The time before which a waiting phone's activation code has expired.
    static func stale(at now: Timestamp) -> SQLValue { .timestamp(now - NewActivation.lifetime) }
}

extension Row {
    /// Reads `Phones.columns`, starting at the column `first`.
    func device(_ first: Int) throws(StoreFailure) -> DeviceView {
        DeviceView(
            id: try id(first), name: try optionalText(first + 1), platform: try word(first + 2),
            state: try word(first + 3), pushToken: try text(first + 8), publicKey: try optionalBlob(first + 4),
            binding: try optionalText(first + 5),
            createdAt: try timestamp(first + 6), lastSeenAt: try optionalTimestamp(first + 7))
    }
}

private let found = "SELECT " + Phones.columns + ", user_id, stopped_by FROM device WHERE id = ?"
private let deviceByID = Statement(found)
private let deviceOfUser = Statement(
    found + " AND user_id = (SELECT u.id FROM user u WHERE u.website_id = ? AND u.username = ?) AND" + Phones.isThere)

private let deviceByRevocation = Statement("SELECT id, user_id FROM device WHERE revocation = ?")

/// Locks the user's row, so that changes of a user's phones run one after the other.
private let markUser = Statement("UPDATE user SET operation = ? WHERE id = ?")

/// Changes the phone. An unbound key stays unbound, and only an operator resumes a phone that an
/// operator stopped.
private let changeDevice = Statement(
    """
    UPDATE device SET name = coalesce(?, name), push_token = coalesce(?, push_token),
    push_token_at = coalesce(?, push_token_at), stopped_by = CASE WHEN ? = 1 THEN NULL
    WHEN stopped_by = 'operator' THEN stopped_by ELSE coalesce(?, stopped_by) END, state = coalesce(?, state), operation = ?
    WHERE id = ? AND state IN (?, ?, ?) AND (state <> 'revoked' OR public_key IS NULL)
    AND (? = 1 OR coalesce(stopped_by, '') <> 'operator') AND (? = 0 OR stopped_by = 'operator') AND EXISTS
    (SELECT 1 FROM user u WHERE u.id = ? AND u.id = device.user_id AND u.operation = ?)
    """)

/// Audits the change. A phone with an approval is waiting, or was waiting until this change. Nobody
/// was notified that it was bound, so its event is `device.withdrawn`.
private let auditDevice = Statement(
    Audit.columns + """
         SELECT ?, ?, CASE WHEN d.approval IS NULL THEN ? ELSE 'device.withdrawn' END, u.website_id, u.id, NULL, d.id, ?,
        NULL FROM device d JOIN user u ON u.id = d.user_id WHERE d.id = ? AND d.operation = ?
        """ + Audit.once)

private let changed = " EXISTS (SELECT 1 FROM audit WHERE operation = ?)"

private let dropPushes = Statement(
    """
    DELETE /*M! o */ FROM outbox
    /*M! AS o JOIN challenge c ON c.id = o.challenge_id WHERE c.user_id = ? AND c.decided_at IS NULL AND o.device_id = ? */
    /*S! WHERE challenge_id IN (SELECT c.id FROM challenge c WHERE c.user_id = ? AND c.decided_at IS NULL)
    AND device_id = ? */ AND
    """ + changed)

/// Cancels open approvals. Expired challenges keep the result `expired`, which was already
/// reported.
private let endApprovals = Statement(
    """
    UPDATE challenge SET state = 'cancelled', reason = 'cancelled', decided_at = ?, operation = ?
    WHERE user_id = ? AND decided_at IS NULL AND approves IS NOT NULL AND expires_at > ? AND
    """ + changed)

private let ofEndedApprovals = " c.user_id = ? AND c.approves IS NOT NULL AND c.operation = ?"
private let dropEntriesOfApprovals = Statement(
    """
    DELETE /*M! o */ FROM outbox
    /*M! AS o JOIN challenge c ON c.id = o.challenge_id WHERE */
    /*S! WHERE challenge_id IN (SELECT c.id FROM challenge c WHERE */
    """ + ofEndedApprovals + " /*S! ) */ AND" + OutboxRows.exceptWebhooks)

private let endedApprovals = Statement("SELECT c.id FROM challenge c WHERE" + ofEndedApprovals)
