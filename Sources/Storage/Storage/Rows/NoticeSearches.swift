import Domain
import Relay

/// The searches for notices.
extension SignedRows {
    static func notice(_ id: NoticeID) -> SignedRows { noticeByID(notice: .id(id)) }

    private static let noticeByID = RowSearch(.notice, where: "id = :notice")

    static func notices(of user: UserID) -> SignedRows { noticesOfUser(user: .id(user)) }

    private static let noticesOfUser = RowSearch(.notice, where: "user_id = :user")

    static func unreadNotices(of user: UserID) -> SignedRows { unreadNoticesOfUser(user: .id(user)) }

    /// The row of an archived notice that is not genuine does not fail the list of the others.
    private static let unreadNoticesOfUser = RowSearch(.notice, where: "user_id = :user AND read_at IS NULL")

    static func archivedNotices(of user: UserID) -> SignedRows { archivedNoticesOfUser(user: .id(user)) }

    private static let archivedNoticesOfUser = RowSearch(.notice, where: "user_id = :user AND read_at IS NOT NULL")
}
