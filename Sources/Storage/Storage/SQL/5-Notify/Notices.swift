import Domain
import Relay
import World

extension Store: NoticeStore {
    public func leave(_ notice: NewNotice, as operation: Operation) async throws(StoreFailure) -> Bool {
        try await run(NoticeRows.leave(notice, as: operation))
    }

    public func withdraw(
        _ withdrawal: NoticeWithdrawal, as operation: Operation
    ) async throws(StoreFailure) -> Bool {
        try await run(NoticeRows.withdraw(withdrawal, as: operation))
    }

    public func notices(of user: UserID) async throws(StoreFailure) -> [Notice] {
        try await run(NoticeRows.all(of: user))
    }

    public func notices(of user: UserID, inArchive: Bool) async throws(StoreFailure) -> NoticeList {
        try await run(NoticeRows.list(of: user, inArchive: inArchive))
    }

    public func fetch(_ fetch: NoticeFetch, as operation: Operation) async throws(StoreFailure) -> FetchedNotice? {
        try await run(NoticeRows.fetch(fetch, as: operation))
    }
}

/// The queries about notices, for the verbs and the operator's tool.
public enum NoticeRows {
    /// Stores a notice, unless the user has too many that no phone has fetched, or too many in all.
    public static func leave(_ notice: NewNotice, as operation: Operation) -> Query<Bool> {
        let change = Change(
            "notice", operation, rows: [.user(notice.user), .notice(notice.id).signed],
            [
                insertNotice(
                    notice: .id(notice.id), author: .word(notice.author), title: .text(notice.title),
                    body: .text(notice.text), now: .timestamp(notice.at), operation: .id(operation),
                    user: .id(notice.user), unread: .integer(Int64(NoticeLimits.unread)),
                    stored: .integer(Int64(NoticeLimits.stored))),
                auditNotice(
                    operation: .id(operation), now: .timestamp(notice.at), event: .text("notice.left"),
                    author: .word(notice.author), notice: .id(notice.id)),
            ])
        return Query(change: change) { rows in rows.happened }
    }

    private static let insertNotice = Statement(
        into: .notice, once: true,
        """
        INSERT INTO notice (id, user_id, author, title, body, created_at, operation)
        SELECT :notice, u.id, :author, :title, :body, :now, :operation FROM user u WHERE u.id = :user
        AND (SELECT count(*) FROM notice n WHERE n.user_id = u.id AND n.read_at IS NULL) < :unread
        AND (SELECT count(*) FROM notice n WHERE n.user_id = u.id) < :stored
        """)

    /// Audits the change that this operation has made to a notice.
    private static let auditNotice = Statement.audit(
        """
        INSERT INTO audit (operation, at, event, website_id, user_id, outcome)
        SELECT :operation, :now, :event, u.website_id, u.id, :author FROM notice n JOIN user u ON u.id = n.user_id
        WHERE n.id = :notice AND n.operation = :operation
        \(Audit.once)
        """)

    /// Deletes a notice. Only an operator deletes notices of an operator.
    ///
    /// The row is not checked, so that a forged one can be deleted, too.
    public static func withdraw(_ withdrawal: NoticeWithdrawal, as operation: Operation) -> Query<Bool> {
        let notice = SQLValue.id(withdrawal.id)
        let change = Change(
            "notice", operation,
            [
                markNotice(
                    operation: .id(operation), notice: notice, user: .id(withdrawal.user),
                    isOperator: .bool(withdrawal.author == .operator)),
                auditNotice(
                    operation: .id(operation), now: .timestamp(withdrawal.at), event: .text("notice.withdrawn"),
                    author: .word(withdrawal.author), notice: notice),
                deleteNotice(notice: notice, operation: .id(operation)),
            ])
        return Query(change: change) { rows in rows.happened }
    }

    private static let markNotice = Statement(
        """
        UPDATE notice SET operation = :operation WHERE id = :notice AND user_id = :user
        AND (:isOperator = 1 OR author = 'website')
        """)

    private static let deleteNotice = Statement(
        "DELETE FROM notice WHERE id = :notice AND operation = :operation AND \(Guards.audited)")
}

// MARK: Lists

extension NoticeRows {
    /// Reads the notices of a user, the newest first.
    public static func all(of user: UserID) -> Query<[Notice]> {
        let script = Script(
            "notice", rows: [.notices(of: user)], reads: [noticesOfUser(user: .id(user), limit: most)])
        return Query(script: script) { rows throws(StoreFailure) in try notices(rows[0]) }
    }

    static func list(of user: UserID, inArchive: Bool) -> Query<NoticeList> {
        let list = inArchive ? archivedNotices : unreadNotices
        let script = Script(
            "notice", rows: [inArchive ? .archivedNotices(of: user) : .unreadNotices(of: user)],
            reads: [list(user: .id(user), limit: most), noticeCounts(user: .id(user))])
        return Query(script: script) { rows throws(StoreFailure) in
            guard let counts = rows[1].first else { throw .internal("a count without a row") }
            let archived = try counts.integer("archived")
            return NoticeList(
                notices: try notices(rows[0]), unread: Int(try counts.integer("notices") - archived),
                archived: Int(archived))
        }
    }

    private static let most = SQLValue.integer(Int64(NoticeLimits.stored))

    private static let columns = "n.id, n.author, n.title, n.body, n.created_at, n.read_at"
    private static let newest = "ORDER BY n.created_at DESC, n.id LIMIT :limit"

    private static let noticesOfUser = Statement("SELECT \(columns) FROM notice n WHERE n.user_id = :user \(newest)")

    private static let unreadNotices = Statement(
        "SELECT \(columns) FROM notice n WHERE n.user_id = :user AND n.read_at IS NULL \(newest)")

    private static let archivedNotices = Statement(
        "SELECT \(columns) FROM notice n WHERE n.user_id = :user AND n.read_at IS NOT NULL \(newest)")

    private static let noticeCounts = Statement(
        "SELECT count(*) AS notices, count(n.read_at) AS archived FROM notice n WHERE n.user_id = :user")

    private static func notices(_ rows: Rows) throws(StoreFailure) -> [Notice] {
        var notices: [Notice] = []
        for row in rows { notices.append(try notice(row)) }
        return notices
    }

    private static func notice(_ row: Row) throws(StoreFailure) -> Notice {
        Notice(
            id: try row.id("id"), author: try row.word("author"), title: try row.text("title"),
            text: try row.text("body"), createdAt: try row.timestamp("created_at"),
            readAt: try row.optionalTimestamp("read_at"))
    }
}

// MARK: A phone's fetch

extension NoticeRows {
    static func fetch(_ fetch: NoticeFetch, as operation: Operation) -> Query<FetchedNotice?> {
        let (notice, user) = (SQLValue.id(fetch.id), SQLValue.id(fetch.user))
        let change = Change(
            "notice", operation, rows: [.user(fetch.user), .notice(fetch.id)],
            [
                archiveNotice(now: .timestamp(fetch.at), operation: .id(operation), notice: notice, user: user),
                auditFetch(
                    operation: .id(operation), now: .timestamp(fetch.at), device: .id(fetch.device), notice: notice),
            ], reads: [fetchedNotice(notice: notice, user: user)])
        return Query(change: change) { rows throws(StoreFailure) in
            guard let row = rows[1].first else { return nil }
            return FetchedNotice(
                notice: try self.notice(row), token: try row.id("token"), unread: Int(try row.integer("unread")),
                isFirst: rows.happened)
        }
    }

    private static let archiveNotice = Statement(
        """
        UPDATE notice SET read_at = :now, operation = :operation
        WHERE id = :notice AND user_id = :user AND read_at IS NULL
        """)

    private static let auditFetch = Statement.audit(
        """
        INSERT INTO audit (operation, at, event, website_id, user_id, device_id)
        SELECT :operation, :now, 'notice.read', u.website_id, u.id, :device FROM notice n JOIN user u ON u.id = n.user_id
        WHERE n.id = :notice AND n.operation = :operation
        \(Audit.once)
        """)

    private static let fetchedNotice = Statement(
        """
        SELECT \(columns), u.token, \(unread("u.id")) AS unread
        FROM notice n JOIN user u ON u.id = n.user_id WHERE n.id = :notice AND n.user_id = :user
        """)

    /// The expression for the number of notices of a user that no phone has fetched.
    static func unread(_ user: String) -> String {
        "(SELECT count(*) FROM notice m WHERE m.user_id = \(user) AND m.read_at IS NULL)"
    }
}
