import Domain
import Relay
import World

extension Store: AddressStore {
    public func change(_ writing: UserUpdate, as operation: Operation) async throws(StoreFailure) -> ChangeOutcome {
        let user = SQLValue.id(writing.user)
        var writes = [
            Locks.hold(user: user),
            markUser(
                operation: .id(operation), user: user, website: .id(writing.website),
                addsNothing: .bool(writing.addresses.isEmpty), isVouchedFor: .bool(writing.isVouchedFor),
                now: .timestamp(writing.at), setsExpiry: .bool(writing.change.expiresAt != nil),
                expiresAt: .timestamp(writing.change.expiresAt ?? nil)),
        ]
        writes += OperationSecrets.onlyOnce(writing.user, as: operation)
        for factor in writing.addresses {
            writes.append(TakenAddresses.unmark(factor.kind, factor.address, user: writing.user, as: operation))
            writes.append(
                unmarkOther(
                    user: user, operation: .id(operation), kind: .word(factor.kind), factor: .id(factor.id),
                    counter: .integer(factor.counter)))
        }
        if let approved = writing.addresses.first?.approvedBy {
            writes += Approvals.required(approved, of: writing.user, at: writing.at, as: operation)
        }
        writes.append(writing.change.written(to: writing.user, at: writing.at, as: operation))
        for factor in writing.addresses {
            writes.append(
                voidSent(now: .timestamp(factor.at), factor: .id(factor.id), user: user, operation: .id(operation)))
            writes.append(dropUnsent(user: user, factor: .id(factor.id), operation: .id(operation)))
            writes += Factors.written(factor, as: operation)
        }
        writes.append(
            auditChange(
                operation: .id(operation), now: .timestamp(writing.at), note: .text(writing.change.note),
                changes: .text(writing.changes.text), user: user))
        for kind in writing.change.removed {
            writes += Factors.takenAway(kind, of: writing.user, at: writing.at, as: operation)
        }
        let taken = writing.addresses.map { TakenAddresses.find($0.kind, $0.address, user: writing.user) }
        let change = Change(
            "change", operation, rows: writing.rows(as: operation), writes,
            reads: [userNow(user: user, website: .id(writing.website), now: .timestamp(writing.at))] + taken)
        return try await run(
            Query(change: change) { rows throws(StoreFailure) in
                if rows.happened { return .done }
                guard let row = rows[1].first else { return .gone }
                let state: UserState = try row.word("state")
                if let wanted = writing.change.expiresAt {
                    let author: ChangeAuthor? = try row.optionalWord("expires_by")
                    let current = try row.optionalTimestamp("expires_at")
                    guard UserExpiry.isAllowed(wanted, insteadOf: current, by: author) else { return .expiryOfOperator }
                }
                guard state == .active else { return .barred(state) }
                let taken = writing.addresses.indices.filter { !rows[2 + $0].isEmpty }
                return taken.isEmpty ? .refused : .taken(taken.map { writing.addresses[$0].kind })
            })
    }
}

/// Marks the user's row. Names can change in every state of the user; addresses are added under the
/// same conditions as other factors. An expiry that an operator has set can only be shortened.
private let markUser = Statement(
    """
    UPDATE user SET operation = :operation WHERE id = :user AND website_id = :website
    AND (:addsNothing = 1 OR \(Guards.userMayLogIn)) AND (:addsNothing = 1 OR :isVouchedFor = 1 OR proved_at IS NULL)
    AND (:setsExpiry = 0 OR coalesce(expires_by, '') <> 'operator' OR :expiresAt <= expires_at)
    """)

/// Removes the mark if the waiting factor is not the one that was read.
private let unmarkOther = Statement(
    """
    \(TakenAddresses.unmarkIf) EXISTS (SELECT 1 FROM factor f
    WHERE f.user_id = user.id AND f.kind = :kind AND f.state = 'waiting' AND NOT (f.id = :factor AND f.counter = :counter))
    """)

/// Expires codes that were sent to the former address, so that they cannot confirm the new one.
private let voidSent = Statement(
    """
    UPDATE sent_code SET expires_at = :now WHERE factor_id = :factor AND expires_at > :now AND \(Guards.userMarked)
    """)

private let dropUnsent = Statement(
    "DELETE FROM outbox WHERE user_id = :user AND factor_id = :factor AND \(Guards.userMarked)")

private let auditChange = Statement.audit(
    """
    INSERT INTO audit (operation, at, event, website_id, user_id)
    SELECT :operation, :now, 'user.changed', u.website_id, u.id FROM user u
    WHERE u.id = :user AND u.operation = :operation
    \(Audit.once)
    """)

private let userNow = Statement(
    """
    SELECT \(Guards.userState) AS state, u.expires_at, u.expires_by FROM user u
    WHERE u.id = :user AND u.website_id = :website
    """)

extension UserUpdate {
    /// The rows that a change of a user writes: the user's, the approval's, and those of the
    /// address factors. The user's row comes first, because other changes of the user wait for it.
    fileprivate func rows(as operation: Operation) -> [SignedRows] {
        var rows: [SignedRows] = [.user(user).signed]
        if let approved = addresses.first?.approvedBy { rows.append(.challenge(approved.challenge).signed) }
        for factor in addresses {
            rows += Factors.rows(factor)
            rows.append(.sentCodes(of: factor.id).lenient)
        }
        for kind in change.removed { rows += Factors.rows(takingAway: kind, of: user, at: at, as: operation) }
        return rows
    }
}

extension UserChange {
    fileprivate var removed: [Factor] { Address.kinds.filter { addresses[$0] == .some(nil) } }

    /// The note in the audit about a new expiry.
    fileprivate var note: String? { expiresAt.map { Expiries.note($0) } }

    /// Writes the names and the expiry, and removes the addresses, of a user whose row this
    /// operation has marked.
    fileprivate func written(
        to user: UserID, at now: Timestamp, as operation: Operation
    ) -> BoundStatement {
        changeUser.bound(
            [
                "setsName": .bool(displayName != nil), "displayName": .text(displayName ?? nil),
                "setsLanguage": .bool(language != nil), "language": .text(language ?? nil),
                "changesMail": .bool(removed.contains(.mail)),
                "changedSince": .timestamp(now - RecoveryLife.addressAge), "now": .timestamp(now),
                "removesPhone": .bool(removed.contains(.sms)), "setsExpiry": .bool(expiresAt != nil),
                "expiresAt": .timestamp(expiresAt ?? nil),
                "expiresBy": .word((expiresAt ?? nil).map { _ in ChangeAuthor.website }), "user": .id(user),
                "operation": .id(operation),
            ], lists: ["newMail": .forms(ofAddress: nil)])
    }
}

private let changeUser = Statement(
    """
    UPDATE user SET display_name = CASE :setsName WHEN 1 THEN :displayName ELSE display_name END,
    language = CASE :setsLanguage WHEN 1 THEN :language ELSE language END,
    \(TakenAddresses.formerMail), email = CASE :changesMail WHEN 1 THEN NULL ELSE email END,
    phone = CASE :removesPhone WHEN 1 THEN NULL ELSE phone END,
    expires_at = CASE :setsExpiry WHEN 1 THEN :expiresAt ELSE expires_at END,
    expires_by = CASE WHEN :setsExpiry = 0 OR expires_by = 'operator' THEN expires_by ELSE :expiresBy END
    WHERE id = :user AND operation = :operation
    """)
