import Domain
import Relay
import World

/// The operator's confirmation that a person's identity was checked (policy `enrolment:
/// confirmed`).
public enum Identities {
    /// The check of a person's identity, in the operator's words.
    public struct Check: Sendable {
        public let user: UserID
        /// The person who checked it.
        public let by: String
        /// The document that was checked.
        public let document: String
        public let at: Timestamp

        public init(user: UserID, by: String, document: String, at: Timestamp) {
            self.user = user
            self.by = by
            self.document = document
            self.at = at
        }
    }

    /// A recorded check.
    public struct Confirmation: Sendable, Equatable {
        public let at: Timestamp
        public let by: String
        public let document: String
    }

    /// The maximum lengths, which are those of the columns.
    public static let byLimit = 64
    public static let documentLimit = 256

    /// Records the check, and issues an activation code with its mail. The answer is false if the
    /// user was deleted or has left the directory. It is also false if there is a code and the user
    /// is not active, because nobody could use the code.
    ///
    /// - Parameter activation: nil if the user gets no code now.
    public static func confirm(
        _ check: Check, activation: NewActivation?, as operation: Operation
    ) -> Query<Bool> {
        let (user, now) = (SQLValue.id(check.user), SQLValue.timestamp(check.at))
        let change = Change(
            "identity", operation, rows: [.user(check.user).signed] + (activation?.writtenRows ?? []),
            [
                confirm(
                    now: now, by: .text(check.by), document: .text(check.document), operation: .id(operation),
                    user: user, isMailed: .bool(activation != nil))
            ] + (activation?.insertions(operation) ?? []) + [
                auditConfirmed(
                    operation: .id(operation), now: now, outcome: .text(activation == nil ? nil : "mailed"),
                    note: .text("\(check.by): \(check.document)"), user: user)
            ])
        return Query(change: change) { rows in rows.happened }
    }

    private static let confirm = Statement(
        """
        UPDATE user SET identity_confirmed_at = :now, identity_by = :by, identity_document = :document,
        operation = :operation WHERE id = :user AND (state = 'active' OR :isMailed = 0 AND state <> 'disabled')
        """)

    private static let auditConfirmed = Statement.audit(
        """
        INSERT INTO audit (operation, at, event, website_id, user_id, outcome)
        SELECT :operation, :now, 'user.identity', u.website_id, u.id, :outcome FROM user u
        WHERE u.id = :user AND u.operation = :operation
        \(Audit.once)
        """)

    /// The columns of a user `u` that hold the check.
    static let columns = "u.identity_confirmed_at, u.identity_by, u.identity_document"

    static func read(_ row: Row) throws(StoreFailure) -> Confirmation? {
        guard let at = try row.optionalTimestamp("identity_confirmed_at") else { return nil }
        return Confirmation(
            at: at, by: try row.optionalText("identity_by") ?? "",
            document: try row.optionalText("identity_document") ?? "")
    }
}
