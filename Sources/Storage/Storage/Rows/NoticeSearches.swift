import Domain
import Relay

/// The searches for notices.
extension SignedRows {
    static func notice(_ id: NoticeID) -> SignedRows { noticeByID(notice: .id(id)) }

    private static let noticeByID = RowSearch(.notice, where: "id = :notice")

    static func notices(of user: UserID) -> SignedRows { noticesOfUser(user: .id(user)) }

    private static let noticesOfUser = RowSearch(.notice, where: "user_id = :user")
}
