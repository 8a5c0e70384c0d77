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
        return unmark.bound(
            ["user": .id(user), "operation": .id(operation)], lists: ["address": .forms(ofAddress: address)])
    }

    private static let unmarkMail = Statement("\(unmarkIf) \(isOfAnother) \(isMail))")
    private static let unmarkPhone = Statement("\(unmarkIf) \(isOfAnother) \(isPhone))")
    private static let isMail = PersonalForms.equal("o.email", "address")
    private static let isPhone = PersonalForms.equal("o.phone", "address")

    /// The beginning of a condition about another user `o` of the user's website. The user's row is
    /// read here once more, so that the website is known before the plan is made: MariaDB looks for
    /// one of several values in a key after the website's id only if it knows the id, and else reads
    /// every user of the website.
    static let isOfAnother = """
        EXISTS (SELECT 1 FROM user me JOIN user o ON o.website_id = me.website_id AND o.id <> me.id
        WHERE me.id = :user AND
        """

    /// Finds another user with the address.
    static func find(_ kind: Factor, _ address: String?, user: UserID) -> BoundStatement {
        let find = kind == .mail ? findMail : findPhone
        return find.bound(["user": .id(user)], lists: ["address": .forms(ofAddress: address)])
    }

    private static let findMail = Statement("\(others) \(isMail) AND u.id = :user")
    private static let findPhone = Statement("\(others) \(isPhone) AND u.id = :user")
    private static let others =
        "SELECT 1 FROM user o JOIN user u ON u.website_id = o.website_id AND u.id <> o.id WHERE"

    /// Gives the address to the user. Another relay may give it to another user at the same time.
    /// In that case the second change finds the address taken.
    static func take(
        _ kind: Factor, _ address: String?, user: UserID, at now: Timestamp, as operation: Operation
    ) -> BoundStatement {
        guard kind == .mail else {
            return takePhone(address: .address(address), user: .id(user), operation: .id(operation))
        }
        return takeMail.bound(
            [
                "changesMail": .bool(true), "address": .address(address),
                "changedSince": .timestamp(now - RecoveryLife.addressAge), "now": .timestamp(now), "user": .id(user),
                "operation": .id(operation),
            ], lists: ["newMail": .forms(ofAddress: address)])
    }

    /// Keeps the address that the user had before the changes of the last days. A thief who changes
    /// it twice does not hide the owner's. MariaDB assigns from left to right, so the new address
    /// must follow. The list `newMail` has its forms.
    static let formerMail = """
        former_email = CASE WHEN :changesMail = 0 OR \(keepsMail) THEN former_email
        WHEN email_changed_at > :changedSince THEN coalesce(former_email, email) ELSE coalesce(email, former_email) END,
        email_changed_at = CASE WHEN :changesMail = 0 OR \(keepsMail) THEN email_changed_at ELSE :now END
        """
    private static let keepsMail = PersonalForms.equal("coalesce(email, '')", "newMail")

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
        return unmark.bound(
            ["user": .id(user), "operation": .id(operation)], lists: ["address": .forms(ofAddress: address)])
    }

    private static let unmarkOtherMail = Statement(
        "\(unmarkIf) \(PersonalForms.differ("coalesce(email, '')", "address"))")
    private static let unmarkOtherPhone = Statement(
        "\(unmarkIf) \(PersonalForms.differ("coalesce(phone, '')", "address"))")
}

/// The addresses of a new user.
extension TakenAddresses {
    /// The condition that no user of the website `w` has an address of the lists. The UNIQUE keys of
    /// the table cannot see that a value in the clear and a sealed one are the same address.
    static let areFree = """
        NOT EXISTS (SELECT 1 FROM user o WHERE o.website_id = w.id AND o.id <> :user
        AND \(PersonalForms.equal("o.email", "anyMail")))
        AND NOT EXISTS (SELECT 1 FROM user o WHERE o.website_id = w.id AND o.id <> :user
        AND \(PersonalForms.equal("o.phone", "anyPhone")))
        """

    /// The lists of `areFree`.
    static func lists(_ mail: String?, _ phone: String?) -> KeyValuePairs<SQLName, [SQLValue]> {
        ["anyMail": .forms(ofAddress: mail), "anyPhone": .forms(ofAddress: phone)]
    }
}
