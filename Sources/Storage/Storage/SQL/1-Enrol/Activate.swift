import Domain
import Relay
import World

extension Store: ActivateStore {
    public func activate(
        _ activation: NewActivation, website: WebsiteID, secret: StoredSecret?, as operation: Operation
    ) async throws(StoreFailure) -> ActivateOutcome {
        var writes = [markUser(operation: .id(operation), user: .id(activation.user), website: .id(website))]
        writes += OperationSecrets.onlyOnce(activation.user, as: operation)
        writes += activation.limits(operation)
        writes += Recoveries.required(activation.recovery, of: activation.user, .push, as: operation)
        if let approved = activation.approvedBy {
            writes += Approvals.required(
                approved, of: activation.user, at: activation.createdAt, as: operation)
        }
        let change = Activations.change(
            activation, writes, secret, as: operation,
            reads: [findLeaver(user: .id(activation.user)), activation.blocker])
        return try await run(
            Query(change: change) { rows throws(StoreFailure) in
                if let activated = try Activations.activated(rows) { return .done(activated) }
                guard rows[2].isEmpty else { return .disabled }
                guard let row = rows[3].first else { return .refused }
                return .limited(by: try row.timestamp("created_at"))
            })
    }
}

/// Locks the user's row, so that two changes of one user run one after the other. A user who left
/// the directory gets no code.
private let markUser = Statement(
    """
    UPDATE user SET operation = :operation WHERE id = :user AND website_id = :website AND state <> 'disabled'
    """)

private let findLeaver = Statement("SELECT 1 FROM user WHERE id = :user AND state = 'disabled'")

/// The operator's queries about activations.
public enum Activations {
    /// The user for whom a code is created.
    public struct Subject: Sendable, Equatable {
        public let user: UserID
        public let token: UserToken
    }

    public static func subject(_ username: String, of website: String) -> Query<Subject?> {
        let script = Script(
            "activation", rows: [.website(named: website), .user(named: username, ofWebsite: website)],
            reads: [subjectByName(website: .text(website), username: .text(username))])
        return Query(script: script) { rows throws(StoreFailure) in
            guard let row = rows[0].first else { return nil }
            return Subject(user: try row.id("id"), token: try row.id("token"))
        }
    }

    private static let subjectByName = Statement(
        """
        SELECT u.id, u.token FROM user u JOIN website w ON w.id = u.website_id
        WHERE w.name = :website AND u.username = :username
        """)

    /// Creates an activation on the operator's authority, if the activation says so. It is for
    /// users who have no factor left with which to approve. The answer has the expiry of the code;
    /// it is nil if there is no such user, or if the user has left the directory.
    public static func byOperator(_ activation: NewActivation, as operation: Operation) -> Query<Activated?> {
        let change = change(
            activation, [markAnyUser(operation: .id(operation), user: .id(activation.user))], nil, as: operation)
        return Query(change: change) { rows throws(StoreFailure) in try activated(rows) }
    }

    private static let markAnyUser = Statement(
        "UPDATE user SET operation = :operation WHERE id = :user AND state <> 'disabled'")

    fileprivate static func change(
        _ activation: NewActivation, _ before: [BoundStatement], _ secret: StoredSecret?, as operation: Operation,
        reads: [BoundStatement] = []
    ) -> Change {
        Change(
            "activation", operation, rows: activation.rows,
            before + activation.insertions(operation) + [
                auditActivation(
                    operation: .id(operation), now: .timestamp(activation.createdAt),
                    approval: .word(activation.approval), digest: .blob(activation.digest))
            ] + OperationSecrets.stored(secret, as: operation), reads: [OperationSecrets.read(operation.id)] + reads)
    }

    fileprivate static func activated(_ rows: [Rows]) throws(StoreFailure) -> Activated? {
        guard let at = try rows.happenedAt else { return nil }
        return Activated(expiresAt: at + NewActivation.lifetime, secret: try rows[1].operationSecret)
    }

    private static let auditActivation = Statement.audit(
        """
        INSERT INTO audit (operation, at, event, website_id, user_id, outcome)
        SELECT :operation, :now, 'user.activation', u.website_id, u.id, :approval
        FROM activation a JOIN user u ON u.id = a.user_id WHERE a.digest = :digest AND a.operation = :operation
        \(Audit.once)
        """)
}

extension NewActivation {
    /// The rows that `insertion` and the use of the approval rely on and write. The user's row
    /// comes first, because other changes of the user wait for it.
    fileprivate var rows: [SignedRows] {
        [.user(user).signed] + (approvedBy.map { [.challenge($0.challenge).signed] } ?? [])
            + (recovery.map { [.recovery($0.recovery)] } ?? []) + writtenRows
    }

    /// The rows that `insertions` writes. A mailed code makes the earlier ones void.
    var writtenRows: [SignedRows] {
        [.activation(digest).signed]
            + (mail.map { [.entry($0.entry).signed, .activations(of: user, at: createdAt).lenient] } ?? [])
    }

    /// Inserts the activation, and its mail if it has one, for a user whose row this operation has
    /// marked.
    func insertions(_ operation: Operation) -> [BoundStatement] {
        [insertion(operation)] + (mail.map { ActivationMails.written($0, of: self, as: operation) } ?? [])
    }

    /// Removes the mark of the user's row if too many codes were mailed to the user.
    fileprivate func limits(_ operation: Operation) -> [BoundStatement] {
        mail == nil ? [] : [ActivationMails.unmarkLimited(user, at: createdAt, as: operation)]
    }

    fileprivate var blocker: BoundStatement { ActivationMails.blocker(user, at: createdAt, isMailed: mail != nil) }

    /// Inserts the activation for a user whose row this operation has marked. If a required
    /// approval could not be used, the row has lost the mark.
    private func insertion(_ operation: Operation) -> BoundStatement {
        insertActivation(
            digest: .blob(digest), now: .timestamp(createdAt), expiresAt: .timestamp(expiresAt),
            approval: .word(approval), recovery: .id(recovery?.recovery), isMailed: .bool(mail != nil),
            operation: .id(operation), user: .id(user))
    }
}

private let insertActivation = Statement(
    into: .activation, once: true,
    """
    INSERT INTO activation (digest, user_id, created_at, expires_at, approval, recovery_id, address, operation)
    SELECT :digest, u.id, :now, :expiresAt, :approval, :recovery, CASE :isMailed WHEN 1 THEN u.email END, :operation FROM user u
    WHERE u.id = :user AND u.operation = :operation
    """)
