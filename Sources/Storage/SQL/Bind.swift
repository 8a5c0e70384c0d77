import Domain
import Relay

extension Store: BindStore {
    public func enrolment(of token: UserToken) async throws(StoreFailure) -> Enrolment? {
        try await run(
            Query(script: Script("enrolment", reads: [Step(enrolmentOfUser, .id(token))])) {
                rows throws(StoreFailure) in
                guard let row = rows[0].first else { return nil }
                return Enrolment(user: try row.id(0), website: try row.text(1), policy: try row.text(2))
            })
    }

    public func bind(
        _ device: NewDevice, digest: [UInt8], as operation: Operation
    ) async throws(StoreFailure) -> Bool {
        let used: [SQLValue] = [.blob(digest), .id(operation), .id(operation)]
        let change = Change(
            "bind", operation,
            [
                Step(
                    markUserOfCode, .id(operation), .id(device.user), .blob(digest), .moment(device.at)),
                Step(
                    useActivation, .moment(device.at), .id(operation), .blob(digest), .id(device.user),
                    .moment(device.at), .id(operation)),
                Step(updateDevice, values: device.changes(operation) + [.id(device.id)] + used),
                Step(insertDevice, values: device.values(operation) + used),
                Step(
                    auditActivation, .id(operation), .moment(device.at), .id(device.id), .blob(digest),
                    .id(operation)),
            ])
        return try await run(Query(change: change) { rows in rows.happened })
    }

    public func bindByWebsite(
        _ device: NewDevice, website: WebsiteID, as operation: Operation
    ) async throws(StoreFailure) -> Bool {
        let user: [SQLValue] = [.id(device.user), .id(operation)]
        let change = Change(
            "bind", operation,
            [
                Step(markUser, .id(operation), .id(device.user), .id(website)),
                Step(updateWebsitePhone, values: device.changes(operation) + [.id(device.id)] + user),
                Step(insertWebsitePhone, values: device.values(operation) + user),
                Step(auditUser, values: [.id(operation), .moment(device.at), .id(device.id)] + user),
            ])
        return try await run(Query(change: change) { rows in rows.happened })
    }
}

extension NewDevice {
    /// What a repeated binding changes.
    fileprivate func changes(_ operation: Operation) -> [SQLValue] {
        [
            .text(name), .word(platform), .word(environment), .text(pushToken), .moment(at), .text(binding),
            .id(operation),
        ]
    }

    fileprivate func values(_ operation: Operation) -> [SQLValue] {
        [
            .id(id), .text(name), .word(platform), .word(environment), .text(pushToken), .moment(at),
            .blob(publicKey), .blob(thumbprint), .blob(revocation), .text(binding), .moment(at), .id(operation),
        ]
    }
}

private let enrolmentOfUser = Statement(
    """
    SELECT u.id, w.name, w.policy FROM user u JOIN website w ON w.id = u.website_id
    WHERE u.token = ? AND w.state = 'active'
    """)

/// Locks the user's row: a user that is being forgotten gets no phone that would be left behind.
private let markUserOfCode = Statement(
    """
    UPDATE user SET operation = ? WHERE id = ? AND EXISTS
    (SELECT 1 FROM activation a
    WHERE a.digest = ? AND a.user_id = user.id AND a.used_at IS NULL AND a.expires_at > ?)
    """)

private let useActivation = Statement(
    """
    UPDATE activation SET used_at = ?, operation = ?
    WHERE digest = ? AND user_id = ? AND used_at IS NULL AND expires_at > ? AND EXISTS
    (SELECT 1 FROM user u WHERE u.id = activation.user_id AND u.operation = ?)
    """)

/// True while the code was used by this operation and the operation has not been carried out. A phone that sends the
/// same once more must not bring a phone back that was revoked in between.
private let justUsed = """
     a.digest = ? AND a.operation = ? AND a.used_at IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM audit WHERE operation = ?)
    """

private let changes = """
    UPDATE device SET state = 'active', name = ?, platform = ?, environment = ?, push_token = ?, push_token_at = ?,
    binding = ?, operation = ? WHERE id = ?
    """

private let insertion = """
    INSERT INTO device
    (id, name, platform, environment, push_token, push_token_at, public_key, thumbprint, revocation, binding,
    created_at, operation, user_id, state, failures)
    """

private let once = " /*M! ON DUPLICATE KEY UPDATE id = device.id */ /*S! ON CONFLICT DO NOTHING */"

private let updateDevice = Statement(changes + " AND EXISTS (SELECT 1 FROM activation a WHERE" + justUsed + ")")
private let insertDevice = Statement(
    insertion + " SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, a.user_id, 'active', 0 FROM activation a WHERE" + justUsed
        + once)

private let auditActivation = Statement(
    Audit.columns + """
         SELECT ?, ?, 'device.bound', u.website_id, u.id, NULL, ?, NULL, NULL
        FROM activation a JOIN user u ON u.id = a.user_id
        WHERE a.digest = ? AND a.operation = ? AND a.used_at IS NOT NULL
        """ + Audit.once)

private let markUser = Statement("UPDATE user SET operation = ? WHERE id = ? AND website_id = ?")
private let updateWebsitePhone = Statement(
    changes + " AND EXISTS (SELECT 1 FROM user WHERE id = ? AND operation = ?)")
private let insertWebsitePhone = Statement(
    insertion + """
         SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, u.id, 'active', 0 FROM user u WHERE u.id = ? AND u.operation = ?
        """ + once)
private let auditUser = Statement(
    Audit.columns + """
         SELECT ?, ?, 'device.bound', u.website_id, u.id, NULL, ?, NULL, 'website'
        FROM user u WHERE u.id = ? AND u.operation = ?
        """ + Audit.once)
