import Directory
import Domain
import JSON
import Relay
import World

/// The changes that a sync makes to users. Each is one script under its own operation, so a sync
/// that dies leaves every user as it was or as it should be.
public struct DirectoryWrites: Sendable {
    let source: String
    let website: WebsiteID
    let run: OperationID
    public let now: Timestamp

    public init(source: String, website: WebsiteID, run: OperationID, at now: Timestamp) {
        self.source = source
        self.website = website
        self.run = run
        self.now = now
    }
}

// MARK: Adding

extension DirectoryWrites {
    /// Adds a user with the factors of its addresses. The answer is false if another user has the
    /// username or an address by now, or if a newer sync has begun.
    public func add(
        _ record: DirectoryRecord, token: UserToken, factors: [NewFactor], as operation: Operation
    ) -> Query<Bool> {
        let user: UserID = operation.identifier("user")
        return Query(
            change: Change(
                "directory add", operation,
                rows: [.website(website), .user(user).signed] + factors.flatMap { Factors.rows($0) },
                [
                    insertUser.bound(
                        [
                            "user": .id(user), "token": .id(token), "username": .text(record.username),
                            "email": .address(record.email), "phone": .address(record.phone),
                            "displayName": .text(record.displayName), "language": .text(record.language),
                            "policy": .text(record.policy), "source": .text(source), "id": .text(record.id),
                            "now": .timestamp(now), "operation": .id(operation), "website": .id(website),
                            "run": .id(run),
                        ], lists: TakenAddresses.lists(record.email, record.phone))
                ] + factors.flatMap { Factors.written($0, as: operation) } + [
                    auditAdded(operation: .id(operation), now: .timestamp(now), user: .id(user))
                ])
        ) { rows in rows.happened }
    }
}

private let insertUser = Statement(
    into: .user, once: true,
    """
    INSERT INTO user
    (id, token, website_id, username, email, phone, display_name, language, policy, directory, directory_id, created_at,
    operation, state)
    SELECT :user, :token, w.id, :username, :email, :phone, :displayName, :language, :policy, :source, :id, :now,
    :operation, 'active'
    FROM website w WHERE w.id = :website AND w.state = 'active' AND \(DirectoryRuns.isNewest)
    AND \(TakenAddresses.areFree)
    """)

private let auditAdded = Statement.audit(
    """
    INSERT INTO audit (operation, at, event, website_id, user_id, outcome)
    SELECT :operation, :now, 'user.registered', u.website_id, u.id, 'directory' FROM user u
    WHERE u.id = :user AND u.operation = :operation
    \(Audit.once)
    """)

// MARK: Updating

extension DirectoryWrites {
    /// Writes the mapped values of the record to a user, who is enabled if disabled. The answer is
    /// false if the user has changed hands or a mapped address has changed since the user was read,
    /// if another user has the username or an address by now, or if a newer sync has begun.
    ///
    /// - Parameter factors: the factors of the new addresses. The former factors of changed
    ///   addresses are removed.
    public func update(_ update: DirectoryUpdate, factors: [NewFactor], as operation: Operation) -> Query<Bool> {
        let (user, own) = (SQLValue.id(update.user.user), SQLValue.id(operation))
        let removed = update.changedAddresses
        var writes = [
            Locks.hold(user: user),
            markUser.bound(
                [
                    "operation": own, "user": user, "website": .id(website), "source": .text(source),
                    "id": .text(update.record.id), "isAdopted": .bool(update.adopts),
                    "username": .text(update.user.username), "setsMail": update.setsMail,
                    "setsPhone": update.setsPhone, "run": .id(run),
                ],
                lists: [
                    "seenMail": .forms(ofAddress: update.user.email),
                    "seenPhone": .forms(ofAddress: update.user.phone),
                ]),
            unmarkTaken.bound(
                ["user": user, "operation": own, "username": .text(update.record.username)],
                lists: TakenAddresses.lists(update.record.email, update.record.phone)),
            update.write(source: source, at: now, as: operation),
            unmarkUnwritten.bound(
                [
                    "user": user, "operation": own, "username": .text(update.record.username),
                    "setsMail": update.setsMail, "setsPhone": update.setsPhone,
                ], lists: TakenAddresses.lists(update.record.email, update.record.phone)),
            auditUpdated(
                operation: own, now: .timestamp(now),
                event: .text(update.enables ? "user.enabled" : "user.changed"), changes: .text(update.replaced.text),
                user: user),
        ]
        for kind in removed { writes += Factors.takenAway(kind, of: update.user.user, at: now, as: operation) }
        writes += factors.flatMap { Factors.written($0, as: operation) }
        let rows =
            [.user(update.user.user).signed]
            + removed.flatMap { Factors.rows(takingAway: $0, of: update.user.user, at: now, as: operation) }
            + factors.flatMap { Factors.rows($0) }
        return Query(change: Change("directory update", operation, rows: rows, writes)) { rows in rows.happened }
    }
}

extension DirectoryUpdate {
    /// The addresses that change, with those that are removed.
    public var changedAddresses: [Factor] {
        changes.compactMap { $0.field == "email" ? .mail : $0.field == "phone" ? .sms : nil }
    }

    /// The values before and after, for the audit.
    fileprivate var replaced: ChangedValues {
        var values = ChangedValues()
        for change in changes { values.note(change.field, .text(change.before), .text(change.after)) }
        return values
    }

    fileprivate var setsMail: SQLValue { .bool(mapping.email != nil) }
    fileprivate var setsPhone: SQLValue { .bool(mapping.phone != nil) }

    fileprivate func write(source: String, at now: Timestamp, as operation: Operation) -> BoundStatement {
        writeUser.bound(
            [
                "username": .text(record.username), "changesMail": setsMail, "address": .address(record.email),
                "changedSince": .timestamp(now - RecoveryLife.addressAge), "now": .timestamp(now),
                "setsPhone": setsPhone, "phone": .address(record.phone), "setsName": .bool(mapping.displayName != nil),
                "displayName": .text(record.displayName), "setsLanguage": .bool(mapping.language != nil),
                "language": .text(record.language), "policy": .text(record.policy), "source": .text(source),
                "id": .text(record.id), "isEnabled": .bool(enables), "user": .id(user.user),
                "operation": .id(operation),
            ], lists: ["newMail": .forms(ofAddress: record.email)])
    }
}

/// Marks the row of a user that the source owns, or that it adopts under the same username. An
/// address that changed after the plan has another factor now, which the plan does not know.
private let markUser = Statement(
    """
    UPDATE user SET operation = :operation WHERE id = :user AND website_id = :website
    AND (directory = :source AND directory_id = :id OR :isAdopted = 1 AND directory IS NULL AND username = :username)
    AND (:setsMail = 0 OR \(PersonalForms.equal("coalesce(email, '')", "seenMail")))
    AND (:setsPhone = 0 OR \(PersonalForms.equal("coalesce(phone, '')", "seenPhone"))) AND \(DirectoryRuns.isNewest)
    """)

/// Removes the mark if another user has one of the values. Each has a condition of its own, because
/// one condition for all three would read every user of the website.
private let unmarkTaken = Statement(
    """
    \(TakenAddresses.unmarkIf) (\(TakenAddresses.isOfAnother) o.username = :username)
    OR \(TakenAddresses.isOfAnother) \(PersonalForms.equal("o.email", "anyMail")))
    OR \(TakenAddresses.isOfAnother) \(PersonalForms.equal("o.phone", "anyPhone"))))
    """)

/// Writes the mapped values. Another user may get one of them at the same time. In that case
/// nothing is written. The state before `disabled` returns with the user. Without one, SQL disabled
/// the user, perhaps to lift a lock, so the user is locked. MariaDB assigns from left to right, so
/// the prior state is removed after it was used.
private let writeUser = Statement(
    """
    UPDATE /*M! IGNORE */ user SET username = :username, \(TakenAddresses.formerMail),
    email = CASE :changesMail WHEN 1 THEN :address ELSE email END,
    phone = CASE :setsPhone WHEN 1 THEN :phone ELSE phone END,
    display_name = CASE :setsName WHEN 1 THEN :displayName ELSE display_name END,
    language = CASE :setsLanguage WHEN 1 THEN :language ELSE language END,
    policy = :policy, directory = :source, directory_id = :id,
    state = CASE WHEN :isEnabled = 1 AND state = 'disabled' THEN coalesce(prior_state, 'locked') ELSE state END,
    prior_state = CASE WHEN :isEnabled = 1 THEN NULL ELSE prior_state END
    WHERE id = :user AND operation = :operation
    """)

private let unmarkUnwritten = Statement(
    """
    \(TakenAddresses.unmarkIf) (username <> :username
    OR :setsMail = 1 AND \(PersonalForms.differ("coalesce(email, '')", "anyMail"))
    OR :setsPhone = 1 AND \(PersonalForms.differ("coalesce(phone, '')", "anyPhone")))
    """)

private let auditUpdated = Statement.audit(
    """
    INSERT INTO audit (operation, at, event, website_id, user_id, outcome)
    SELECT :operation, :now, :event, u.website_id, u.id, 'directory' FROM user u
    WHERE u.id = :user AND u.operation = :operation
    \(Audit.once)
    """)
