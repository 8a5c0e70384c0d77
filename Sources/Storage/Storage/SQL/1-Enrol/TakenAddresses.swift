import Domain
import Relay
import World

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
    static func take(
        _ kind: Factor, _ address: String?, user: UserID, at now: Timestamp, as operation: Operation
    ) -> BoundStatement {
        guard kind == .mail else {
            return takePhone(address: .text(address), user: .id(user), operation: .id(operation))
        }
        return takeMail(
            changesMail: .bool(true), address: .text(address), changedSince: .timestamp(now - RecoveryLife.addressAge),
            now: .timestamp(now), user: .id(user), operation: .id(operation))
    }

    /// Keeps the address that the user had before the changes of the last days. A thief who changes
    /// it twice does not hide the owner's. MariaDB assigns from left to right, so the new address
    /// must follow, as `:address`.
    static let formerMail = """
        former_email = CASE WHEN :changesMail = 0 OR coalesce(email, '') = coalesce(:address, '') THEN former_email
        WHEN email_changed_at > :changedSince THEN coalesce(former_email, email) ELSE coalesce(email, former_email) END,
        email_changed_at = CASE WHEN :changesMail = 0 OR coalesce(email, '') = coalesce(:address, '')
        THEN email_changed_at ELSE :now END
        """

    private static let takeMail = Statement(
        """
        UPDATE /*M! IGNORE */ user SET \(formerMail), email = :address WHERE id = :user AND operation = :operation
        """)
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
