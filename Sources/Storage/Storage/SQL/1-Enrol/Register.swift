import Domain
import Relay
import World

extension Store: RegisterStore {
    public func register(
        _ user: NewUser, activation: NewActivation?, secret: StoredSecret?, as operation: Operation
    ) async throws(StoreFailure) -> RegisterOutcome {
        let fields = user.registration
        let rows =
            [.website(user.website), .user(user.id).signed] + (activation?.writtenRows ?? [])
            + user.factors.flatMap { Factors.rows($0) }
        let change = Change(
            "register", operation, rows: rows,
            [
                insertUser.bound(
                    [
                        "user": .id(user.id), "token": .id(user.token), "username": .text(fields.username),
                        "email": .address(fields.email), "phone": .address(fields.phone),
                        "displayName": .text(fields.displayName), "language": .text(fields.language),
                        "expiresAt": .timestamp(fields.expiresAt),
                        "author": .word(fields.expiresAt.map { _ in ChangeAuthor.website }),
                        "now": .timestamp(user.createdAt), "operation": .id(operation), "website": .id(user.website),
                    ], lists: TakenAddresses.lists(fields.email, fields.phone))
            ] + OperationSecrets.onlyOnce(user.id, as: operation) + (activation?.insertions(operation) ?? [])
                + user.factors.flatMap { Factors.written($0, as: operation) } + [
                    auditUser(operation: .id(operation), now: .timestamp(user.createdAt), user: .id(user.id))
                ] + OperationSecrets.stored(secret, as: operation),
            reads: [
                OperationSecrets.read(operation.id),
                active(website: .id(user.website)),
                taken.bound(
                    ["website": .id(user.website), "user": .id(user.id), "username": .text(fields.username)],
                    lists: TakenAddresses.lists(fields.email, fields.phone)),
            ])
        return try await run(
            Query(change: change) { rows throws(StoreFailure) in
                if let at = try rows.happenedAt {
                    return .registered(
                        activationExpiresAt: at + NewActivation.lifetime, secret: try rows[1].operationSecret)
                }
                guard !rows[2].isEmpty, let row = rows[3].first else { return .websiteGone }
                return .taken(
                    username: try row.bool("is_username_taken"), email: try row.bool("is_email_taken"),
                    phone: try row.bool("is_phone_taken"))
            })
    }
}

private let insertUser = Statement(
    into: .user, once: true,
    """
    INSERT INTO user
    (id, token, website_id, username, email, phone, display_name, language, expires_at, expires_by, created_at, operation,
    state)
    SELECT :user, :token, w.id, :username, :email, :phone, :displayName, :language, :expiresAt, :author, :now, :operation,
    'active'
    FROM website w WHERE w.id = :website AND w.state = 'active' AND \(TakenAddresses.areFree)
    """)

private let auditUser = Statement.audit(
    """
    INSERT INTO audit (operation, at, event, website_id, user_id)
    SELECT :operation, :now, 'user.registered', u.website_id, u.id FROM user u
    WHERE u.id = :user AND u.operation = :operation
    \(Audit.once)
    """)

private let active = Statement("SELECT 1 FROM website WHERE id = :website AND state = 'active'")

private let isMailTaken = PersonalForms.equal("email", "anyMail")
private let isPhoneTaken = PersonalForms.equal("phone", "anyPhone")

private let taken = Statement(
    """
    SELECT EXISTS (SELECT 1 FROM user WHERE website_id = :website AND id <> :user AND username = :username)
    AS is_username_taken,
    EXISTS (SELECT 1 FROM user WHERE website_id = :website AND id <> :user AND \(isMailTaken)) AS is_email_taken,
    EXISTS (SELECT 1 FROM user WHERE website_id = :website AND id <> :user AND \(isPhoneTaken)) AS is_phone_taken
    """)
