import Domain

/// What websites and users are told of beside their logins: rows of the outbox, written with the change itself.
enum News {
    /// To be put behind the change's audit, whose row may have an id of its own. Websites without a callback and users
    /// without an address get no row.
    ///
    /// - Parameter event: nothing is told unless the audit calls the change so; nil where it is always told.
    static func steps(
        _ announcement: Announcement, user: UserID, device: DeviceID?, after event: String? = nil,
        as operation: Operation, noted: OperationID? = nil
    ) -> [Step] {
        [("callback", toWebsite), ("mail", toUser)].map { kind, statement in
            let id: ErrandID = operation.identifier("\(kind) \(announcement.rawValue)")
            return Step(
                statement, .id(id), .word(announcement), .id(device), .id(user), .id(noted ?? operation.id),
                .text(event))
        }
    }
}

/// Two equal requests at one moment are one change, and tell it once.
private let once = " /*M! ON DUPLICATE KEY UPDATE id = outbox.id */ /*S! ON CONFLICT DO NOTHING */"

/// Without a due time: nothing of this version delivers them.
private let toWebsite = Statement(
    """
    INSERT INTO outbox (id, kind, event, device_id, user_id, attempts)
    SELECT ?, 'callback', ?, ?, u.id, 0 FROM user u JOIN website w ON w.id = u.website_id
    WHERE u.id = ? AND w.callback IS NOT NULL AND EXISTS (SELECT 1 FROM audit WHERE operation = ? AND event = coalesce(?, event))
    """ + once)

private let toUser = Statement(
    """
    INSERT INTO outbox (id, kind, event, device_id, user_id, attempts)
    SELECT ?, 'mail', ?, ?, u.id, 0 FROM user u
    WHERE u.id = ? AND u.email IS NOT NULL AND EXISTS (SELECT 1 FROM audit WHERE operation = ? AND event = coalesce(?, event))
    """ + once)
