import Domain
import Relay

/// Statements about addresses that another user of the website may have: in the user's own columns
/// `email` and `phone`.
enum TakenAddresses {
    /// The beginning of a guard. If the condition that follows is true, the guard removes the mark,
    /// and the statements after it have no effect.
    static let unmarkIf = "UPDATE user SET operation = id WHERE id = :user AND operation = :operation AND"

    /// Removes the mark of the user's row if another user has the address.
    static func unmark(_ kind: Factor, _ address: String?, user: UserID, as operation: Operation) -> BoundStatement {
        let unmark = kind == .mail ? unmarkMail : unmarkPhone
        return unmark(user: .id(user), operation: .id(operation), address: .text(address))
    }

    private static let unmarkMail = Statement("\(unmarkIfOther) o.email = :address)")
    private static let unmarkPhone = Statement("\(unmarkIfOther) o.phone = :address)")
    private static let unmarkIfOther =
        "\(unmarkIf) EXISTS (SELECT 1 FROM user o WHERE o.website_id = user.website_id AND o.id <> user.id AND"

    /// Finds another user with the address.
    static func find(_ kind: Factor, _ address: String?, user: UserID) -> BoundStatement {
        let find = kind == .mail ? findMail : findPhone
        return find(address: .text(address), user: .id(user))
    }

    private static let findMail = Statement("\(others) o.email = :address AND u.id = :user")
    private static let findPhone = Statement("\(others) o.phone = :address AND u.id = :user")
    private static let others =
        "SELECT 1 FROM user o JOIN user u ON u.website_id = o.website_id AND u.id <> o.id WHERE"

    /// Gives the address to the user. Another relay may give it to another user at the same time.
    /// In that case the second change finds the address taken.
    static func take(_ kind: Factor, _ address: String?, user: UserID, as operation: Operation) -> BoundStatement {
        let take = kind == .mail ? takeMail : takePhone
        return take(address: .text(address), user: .id(user), operation: .id(operation))
    }

    private static let takeMail = Statement(
        "UPDATE /*M! IGNORE */ user SET email = :address WHERE id = :user AND operation = :operation")
    private static let takePhone = Statement(
        "UPDATE /*M! IGNORE */ user SET phone = :address WHERE id = :user AND operation = :operation")

    /// Removes the mark of the user's row if the user did not get the address.
    static func unmarkUntaken(
        _ kind: Factor, _ address: String?, user: UserID, as operation: Operation
    ) -> BoundStatement {
        let unmark = kind == .mail ? unmarkOtherMail : unmarkOtherPhone
        return unmark(user: .id(user), operation: .id(operation), address: .text(address))
    }

    private static let unmarkOtherMail = Statement("\(unmarkIf) coalesce(email, '') <> :address")
    private static let unmarkOtherPhone = Statement("\(unmarkIf) coalesce(phone, '') <> :address")
}
