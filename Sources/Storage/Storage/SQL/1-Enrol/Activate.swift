import Domain
import Relay
import World

extension Store: ActivateStore {
    public func activate(
        _ activation: NewActivation, website: WebsiteID, secret: StoredSecret?, as operation: Operation
    ) async throws(StoreFailure) -> Activated? {
        var writes = [BoundStatement(markUser, .id(operation), .id(activation.user), .id(website))]
        writes += OperationSecrets.onlyOnce(activation.user, as: operation)
        if let approved = activation.approvedBy {
            writes.append(Approvals.use(approved, of: activation.user, as: operation))
        }
        return try await run(Activations.query(activation, writes, secret, as: operation))
    }
}

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
            reads: [BoundStatement(subjectByName, .text(website), .text(username))])
        return Query(script: script) { rows throws(StoreFailure) in
            guard let row = rows[0].first else { return nil }
            return Subject(user: try row.id(0), token: try row.id(1))
        }
    }

    /// Creates an activation on the operator's authority, if the activation says so. It is for
    /// users who have no factor left with which to approve. The answer has the expiry of the code;
    /// it is nil if there is no such user.
    public static func byOperator(_ activation: NewActivation, as operation: Operation) -> Query<Activated?> {
        query(activation, [BoundStatement(markAnyUser, .id(operation), .id(activation.user))], nil, as: operation)
    }

    fileprivate static func query(
        _ activation: NewActivation, _ before: [BoundStatement], _ secret: StoredSecret?, as operation: Operation
    ) -> Query<Activated?> {
        let change = Change(
            "activation", operation, rows: activation.rows,
            before + [
                activation.insertion(operation),
                BoundStatement(
                    auditActivation, .id(operation), .timestamp(activation.createdAt), .word(activation.approval),
                    .blob(activation.digest), .id(operation)),
            ] + OperationSecrets.stored(secret, as: operation), reads: [OperationSecrets.read(operation.id)])
        return Query(change: change) { rows throws(StoreFailure) in
            guard let at = try rows.happenedAt else { return nil }
            return Activated(expiresAt: at + NewActivation.lifetime, secret: try rows[1].operationSecret)
        }
    }
}

extension NewActivation {
    /// The rows that `insertion` and the use of the approval rely on and write. The user's row
    /// comes first, because other changes of the user wait for it.
    fileprivate var rows: [SignedRows] {
        [.user(user).signed] + (approvedBy.map { [.challenge($0.challenge).signed] } ?? [])
            + [.activation(digest).signed]
    }

    /// Inserts the activation for a user whose row this operation has marked. An activation with an
    /// approval is inserted only if this operation has used the approval.
    func insertion(_ operation: Operation) -> BoundStatement {
        let values: [SQLValue] = [
            .blob(digest), .timestamp(createdAt), .timestamp(expiresAt), .word(approval), .id(operation), .id(user),
            .id(operation),
        ]
        guard let approvedBy else { return BoundStatement(insertActivation, values: values) }
        return BoundStatement(insertApproved, values: values + [.id(approvedBy.challenge), .id(operation)])
    }
}

private let subjectByName = Statement(
    """
    SELECT u.id, u.token FROM user u JOIN website w ON w.id = u.website_id WHERE w.name = ? AND u.username = ?
    """)

/// Locks the user's row, so that two changes of one user run one after the other.
private let markUser = Statement("UPDATE user SET operation = ? WHERE id = ? AND website_id = ?")
private let markAnyUser = Statement("UPDATE user SET operation = ? WHERE id = ?")

private let insertion = """
    INSERT INTO activation (digest, user_id, created_at, expires_at, approval, operation)
    SELECT ?, u.id, ?, ?, ?, ? FROM user u WHERE u.id = ? AND u.operation = ?
    """

private let insertActivation = Statement(into: .activation, once: true, insertion)
private let insertApproved = Statement(
    into: .activation, once: true,
    insertion + " AND EXISTS (SELECT 1 FROM challenge c WHERE c.id = ? AND c.used_by = ?)")

private let auditActivation = Statement(
    Audit.columns + """
         SELECT ?, ?, 'user.activation', u.website_id, u.id, NULL, NULL, ?, NULL
        FROM activation a JOIN user u ON u.id = a.user_id WHERE a.digest = ? AND a.operation = ?
        """ + Audit.once)
