import Domain
import World

/// What websites and users are told of beside their logins: rows of the outbox, written with the change itself.
enum News {
    /// So long it is tried to tell somebody.
    static let life = Duration.seconds(24 * 3600)

    /// To be put behind the change's audit, whose row may have an id of its own. Websites without a callback and users
    /// without an address get no row.
    ///
    /// - Parameter event: nothing is told unless the audit calls the change so; nil where it is always told.
    static func steps(
        _ announcement: Announcement, user: UserID, device: DeviceID?, after event: String? = nil, at now: Timestamp,
        as operation: Operation, noted: OperationID? = nil
    ) -> [Step] {
        func values(_ kind: String, _ more: SQLValue...) -> [SQLValue] {
            let id: ErrandID = operation.identifier("\(kind) \(announcement.rawValue)")
            let audit: [SQLValue] = [.id(user), .id(noted ?? operation.id), .text(event)]
            return [.id(id), .word(announcement), .id(device), .moment(now)] + more + audit
        }
        return [
            Step(toWebsite, values: values("callback")),
            Step(toUser, values: values("mail", .moment(now + life), .moment(now))),
        ]
    }
}

/// Two equal requests at one moment are one change, and tell it once.
private let once = " /*M! ON DUPLICATE KEY UPDATE id = outbox.id */ /*S! ON CONFLICT DO NOTHING */"

private let told = """
    AND EXISTS (SELECT 1 FROM audit WHERE operation = ? AND event = coalesce(?, event))
    """ + once

/// Without a due time: nothing of this version delivers them.
private let toWebsite = Statement(
    """
    INSERT INTO outbox (id, kind, event, device_id, user_id, created_at, attempts)
    SELECT ?, 'callback', ?, ?, u.id, ?, 0 FROM user u JOIN website w ON w.id = u.website_id
    WHERE u.id = ? AND w.callback IS NOT NULL
    """ + " " + told)

/// Its address is looked up when it is sent: the user may have another one by then.
private let toUser = Statement(
    """
    INSERT INTO outbox (id, kind, event, device_id, user_id, created_at, expires_at, due_at, attempts)
    SELECT ?, 'mail', ?, ?, u.id, ?, ?, ?, 0 FROM user u
    WHERE u.id = ? AND (u.email IS NOT NULL OR EXISTS
    (SELECT 1 FROM factor f WHERE f.user_id = u.id AND f.kind = 'mail' AND f.state = 'active'))
    """ + " " + told)
