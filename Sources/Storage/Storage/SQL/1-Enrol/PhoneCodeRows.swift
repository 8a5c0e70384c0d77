import Domain
import Relay
import World

extension Store: PhoneCodeStore {
    public func deliver(
        _ delivery: SecretDelivery, as operation: Operation
    ) async throws(StoreFailure) -> SecretDeliveryOutcome {
        let (phone, factor) = (delivery.phone, delivery.factor)
        let (user, device, now) = (SQLValue.id(phone.user), SQLValue.id(phone.id), SQLValue.timestamp(delivery.at))
        let key = (SQLValue.blob(phone.key), SQLValue.blob(delivery.agreement))
        let judged = (
            SQLValue.integer((delivery.pin?.version).map { Int64($0) }),
            SQLValue.integer((delivery.pin?.failures).map { Int64($0) })
        )
        let (asked, own) = (SQLValue.timestamp(delivery.askedAt), SQLValue.id(operation))
        let writes =
            [
                Locks.hold(user: user),
                markUser(
                    operation: own, user: user, now: now, device: device, key: key.0, agreement: key.1, asked: asked,
                    pinVersion: judged.0, pinFailures: judged.1, since: .timestamp(delivery.repeatableSince)),
                insertFactor(
                    factor: .id(factor.id), secret: .blob(factor.sealed?.bytes), sealedBy: .text(factor.sealed?.key),
                    algorithm: .word(factor.algorithm), digits: .integer(Int64(factor.digits)),
                    period: .integer(factor.period.map { Int64($0) }), now: now, device: device, operation: own,
                    user: user),
                recordRequest(asked: asked, device: device, user: user, operation: own),
                auditDelivery(
                    operation: own, now: now, device: device, user: user,
                    announcedSince: .timestamp(delivery.at - PhoneCodeRows.announcementPause)),
                recordAnnouncement(now: now, device: device, user: user, operation: own),
            ]
            + AccountEventRows.steps(
                .secretDelivered, user: phone.user, device: phone.id, after: PhoneCodeRows.event, at: delivery.at,
                as: operation)
        let rows: [SignedRows] = [
            .user(phone.user).signed, .device(phone.id).signed, .factors(of: phone.user), .factor(factor.id).signed,
        ]
        let change = Change(
            "deliver secret", operation, rows: rows + AccountEventRows.rows(.secretDelivered, as: operation), writes,
            reads: [
                ownFactor(user: user, device: device),
                whyNot(
                    now: now, device: device, key: key.0, user: user, agreement: key.1, asked: asked,
                    pinVersion: judged.0, pinFailures: judged.1),
            ])
        return try await run(
            Query(change: change) { rows throws(StoreFailure) in
                guard !rows.happened else {
                    guard let row = rows[1].first else { return .delivered }
                    return .done(try CodeFactors.read(row))
                }
                return try rows[2].first?.refusedDelivery ?? .gone
            })
    }
}

/// The secrets that only phones get.
enum PhoneCodeRows {
    /// The event in the audit.
    static let event = "secret.delivered"
    /// The event in the audit if the user was told lately. It causes no announcement: a phone must not
    /// use up the messages that its user gets in an hour.
    static let repeated = "secret.repeated"
    /// The time between two announcements about one factor.
    static let announcementPause = Duration.seconds(86_400)

    /// Deletes the secret of a phone that may no longer answer. It is part of a change that
    /// `operation` has put into the audit.
    static func dropped(with device: DeviceID, of user: UserID, at now: Timestamp, as operation: Operation)
        -> [BoundStatement]
    {
        [
            keepFailures(user: .id(user), device: .id(device), operation: .id(operation)),
            giveUpSteps(now: .timestamp(now), user: .id(user), device: .id(device), operation: .id(operation)),
            dropFactor(user: .id(user), device: .id(device), operation: .id(operation)),
            CascadeSteps.makeDue(of: user, at: now, by: operation),
        ]
    }

    private static let keepFailures = Statement(keepingFailures(ofOne))

    /// Wrong codes stay counted although their factor is deleted.
    private static func keepingFailures(_ phones: String) -> String {
        """
        UPDATE user SET code_failures_kept = /*M! least( */ /*S! min( */ code_failures, code_failures_kept +
        (SELECT coalesce(sum(f.failures), 0) FROM factor f WHERE f.user_id = user.id AND \(phones)))
        WHERE id = :user AND code_failures > 0 AND \(Guards.audited)
        """
    }

    private static let giveUpSteps = Statement(givingUpSteps(ofOne))

    private static func givingUpSteps(_ phones: String) -> String {
        """
        UPDATE step /*M! JOIN challenge c ON c.id = step.challenge_id */
        SET /*M! step.state */ /*S! state */ = 'undeliverable', at = :now,
        /*M! step.reason */ /*S! reason */ = 'the factor was dropped or replaced'
        WHERE step.factor = 'totp' AND step.state IN ('queued', 'sent') AND
        /*S! challenge_id IN (SELECT c.id FROM challenge c WHERE */
        c.user_id = :user AND c.decided_at IS NULL /*S! ) */
        AND EXISTS (SELECT 1 FROM factor f WHERE f.user_id = :user AND \(phones)) AND \(Guards.audited)
        """
    }

    private static let dropFactor = Statement(
        "DELETE FROM factor WHERE user_id = :user AND device_id = :device AND \(Guards.audited)")

    /// Deletes the secrets of the user's other phones, which one phone replaces. The caller makes the
    /// next steps due.
    static func droppedOfOthers(
        than device: DeviceID, of user: UserID, at now: Timestamp, as operation: Operation
    ) -> [BoundStatement] {
        let (person, phone, change) = (SQLValue.id(user), SQLValue.id(device), SQLValue.id(operation))
        return [
            keepFailuresOfOthers(user: person, device: phone, operation: change),
            giveUpStepsOfOthers(now: .timestamp(now), user: person, device: phone, operation: change),
            dropOfOthers(user: person, device: phone, operation: change),
        ]
    }

    private static let keepFailuresOfOthers = Statement(keepingFailures(ofOthers))
    private static let giveUpStepsOfOthers = Statement(givingUpSteps(ofOthers))
    private static let dropOfOthers = Statement(
        "DELETE FROM factor WHERE user_id = :user AND device_id IS NOT NULL AND device_id <> :device AND \(Guards.audited)"
    )

    private static let ofOne = "f.device_id = :device"
    private static let ofOthers = "f.device_id IS NOT NULL AND f.device_id <> :device"
}

/// Marks the row of an active user with this active phone. The request must be later than the one
/// before, so that nobody repeats it.
private let markUser = Statement(
    """
    UPDATE user SET operation = :operation
    WHERE id = :user AND state = 'active' AND (expires_at IS NULL OR expires_at > :now)
    AND EXISTS (SELECT 1 FROM device d WHERE d.id = :device AND d.user_id = user.id AND d.thumbprint = :key
    AND d.state = 'active' AND d.agreement_key = :agreement
    AND (d.secret_asked_at IS NULL OR d.secret_asked_at < :asked) AND \(PINRows.isAsJudged))
    AND NOT EXISTS (SELECT 1 FROM factor f WHERE f.user_id = user.id AND f.kind = 'totp' AND f.state = 'active'
    AND (f.device_id IS NULL OR f.device_id <> :device OR f.created_at <= :since))
    """)

/// Inserts the factor unless the phone has one. It is active at once: only this phone can open its
/// secret, and has just proved its key.
private let insertFactor = Statement(
    into: .factor, once: true,
    """
    INSERT INTO factor
    (id, secret, sealed_by, algorithm, digits, period, counter, created_at, confirmed_at, device_id, operation, kind,
    state, user_id, failures)
    SELECT :factor, :secret, :sealedBy, :algorithm, :digits, :period, 0, :now, :now, :device, :operation, 'totp',
    'active', u.id, 0 FROM user u WHERE u.id = :user AND u.operation = :operation
    AND NOT EXISTS (SELECT 1 FROM factor f WHERE f.user_id = :user AND f.kind = 'totp' AND f.state = 'active')
    """)

private let recordRequest = Statement(
    """
    UPDATE device SET secret_asked_at = :asked
    WHERE id = :device AND (secret_asked_at IS NULL OR secret_asked_at < :asked) AND \(Guards.userMarked)
    """)

private let auditDelivery = Statement.audit(
    """
    INSERT INTO audit (operation, at, event, website_id, user_id, device_id, outcome)
    SELECT :operation, :now, CASE WHEN EXISTS
    (SELECT 1 FROM factor f WHERE f.user_id = u.id AND f.device_id = :device AND f.announced_at > :announcedSince)
    THEN '\(PhoneCodeRows.repeated)' ELSE '\(PhoneCodeRows.event)' END, u.website_id, u.id, :device, 'totp' FROM user u
    WHERE u.id = :user AND u.operation = :operation
    \(Audit.once)
    """)

private let recordAnnouncement = Statement(
    """
    UPDATE factor SET announced_at = :now WHERE user_id = :user AND device_id = :device AND EXISTS
    (SELECT 1 FROM audit a WHERE a.operation = :operation AND a.event = '\(PhoneCodeRows.event)')
    """)

private let ownFactor = Statement(
    """
    SELECT \(CodeFactors.columns) FROM factor f
    WHERE f.user_id = :user AND f.kind = 'totp' AND f.state = 'active' AND f.device_id = :device
    """)

private let whyNot = Statement(
    """
    SELECT \(Guards.userState) AS state, coalesce(d.agreement_key = :agreement, 0) AS has_key,
    coalesce(d.secret_asked_at >= :asked, 0) AS is_replayed, \(PINRows.isAsJudged) AS has_judged_pin,
    EXISTS (SELECT 1 FROM factor f WHERE f.user_id = u.id AND f.kind = 'totp' AND f.state = 'active'
    AND (f.device_id IS NULL OR f.device_id <> :device)) AS is_taken
    FROM device d JOIN user u ON u.id = d.user_id
    WHERE d.id = :device AND d.thumbprint = :key AND d.state = 'active' AND u.id = :user
    """)

extension Row {
    /// The reason why nothing was delivered, in the row of `whyNot`.
    fileprivate var refusedDelivery: SecretDeliveryOutcome {
        get throws(StoreFailure) {
            let state: UserState = try word("state")
            guard state == .active else { return .barred(state) }
            guard try bool("has_judged_pin") else { return .otherPIN }
            guard try bool("has_key") else { return .otherKey }
            if try bool("is_replayed") { return .replayed }
            return try bool("is_taken") ? .taken : .delivered
        }
    }
}
