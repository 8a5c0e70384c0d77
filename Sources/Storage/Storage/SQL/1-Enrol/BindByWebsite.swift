import Domain
import Relay

/// Binding by the website, as in the original product.
extension Store {
    public func bindByWebsite(
        _ device: NewDevice, website: WebsiteID, as operation: Operation
    ) async throws(StoreFailure) -> WebsiteBindOutcome {
        let (user, id, now) = (SQLValue.id(device.user), SQLValue.id(device.id), SQLValue.timestamp(device.at))
        let change = Change(
            "bind", operation,
            rows: [.user(device.user).signed, .device(device.id).signed]
                + AccountEventRows.rows(.deviceBound, as: operation),
            [
                markUserOfWebsite(operation: .id(operation), user: user, website: .id(website), now: now),
                auditReplaced(operation: .id(operation), now: now, device: id, user: user),
                device.updatedByWebsite(as: operation), device.insertedByWebsite(as: operation),
                auditByWebsite(operation: .id(operation), now: now, device: id, user: user),
            ]
                + AccountEventRows.steps(
                    .deviceBound, user: device.user, device: device.id, after: BoundPhone.event, at: device.at,
                    as: operation),
            reads: [stopped(device: id)])
        return try await run(
            Query(change: change) { rows in rows.happened ? .done : rows[1].isEmpty ? .gone : .blockedByOperator })
    }
}

/// Marks the row of a user who has neither left the directory nor expired. A locked user may get a
/// phone, because the website answers for it and no answer succeeds.
private let markUserOfWebsite = Statement(
    """
    UPDATE user SET operation = :operation WHERE id = :user AND website_id = :website AND state <> 'disabled'
    AND (expires_at IS NULL OR expires_at > :now)
    """)

/// Audits a new device token of a phone that is already bound. Nobody is notified of it.
private let auditReplaced = Statement.audit(
    """
    INSERT INTO audit (operation, at, event, website_id, user_id, device_id, proof)
    SELECT :operation, :now, 'device.changed', u.website_id, u.id, d.id, 'website'
    FROM device d JOIN user u ON u.id = d.user_id
    WHERE d.id = :device AND d.state = 'active' AND u.id = :user AND u.operation = :operation
    \(Audit.once)
    """)

private let auditByWebsite = Statement.audit(
    """
    INSERT INTO audit (operation, at, event, website_id, user_id, device_id, proof)
    SELECT :operation, :now, '\(BoundPhone.event)', u.website_id, u.id, d.id, 'website'
    FROM device d JOIN user u ON u.id = d.user_id
    WHERE d.id = :device AND d.operation = u.operation AND u.id = :user AND u.operation = :operation
    \(Audit.once)
    """)

private let stopped = Statement("SELECT 1 FROM device WHERE id = :device AND stopped_by = 'operator'")

extension NewDevice {
    fileprivate func updatedByWebsite(as operation: Operation) -> BoundStatement {
        updatePhone(
            name: .text(name), platform: .word(platform), environment: .word(environment),
            pushToken: .pushToken(pushToken),
            now: .timestamp(at), agreementKey: .blob(agreementKey), revocation: .blob(revocation),
            binding: .text(binding), approval: .id(approval),
            state: .word(state), operation: .id(operation), device: .id(id), user: .id(user))
    }

    fileprivate func insertedByWebsite(as operation: Operation) -> BoundStatement {
        insertPhone(
            device: .id(id), name: .text(name), platform: .word(platform), environment: .word(environment),
            pushToken: .pushToken(pushToken), now: .timestamp(at), publicKey: .blob(publicKey),
            thumbprint: .blob(thumbprint), agreementKey: .blob(agreementKey), revocation: .blob(revocation),
            binding: .text(binding),
            approval: .id(approval), operation: .id(operation), state: .word(state), user: .id(user))
    }
}

private let updatePhone = Statement(
    "\(BoundPhone.update) AND coalesce(stopped_by, '') <> 'operator' AND \(Guards.userMarked)")

private let insertPhone = Statement(
    into: .device, once: true,
    "\(BoundPhone.insert) u.id, 0 FROM user u WHERE u.id = :user AND u.operation = :operation")
