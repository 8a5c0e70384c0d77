import Domain
import Relay
import World

extension Store: AddressStore {
    public func change(_ writing: UserUpdate, as operation: Operation) async throws(StoreFailure) -> ChangeOutcome {
        let user = SQLValue.id(writing.user)
        let marked: [SQLValue] = [user, .id(operation)]
        let addsNothing = writing.addresses.isEmpty
        var writes = [
            BoundStatement(Locks.hold, user),
            BoundStatement(
                markUser, .id(operation), user, .id(writing.website), .bool(addsNothing),
                .bool(addsNothing || writing.isVouchedFor)),
        ]
        writes += OperationSecrets.onlyOnce(writing.user, as: operation)
        for factor in writing.addresses {
            writes.append(AddressRows.unmarkTaken(factor.kind, factor.address, user: writing.user, as: operation))
            writes.append(
                BoundStatement(
                    unmarkOther, values: marked + [.word(factor.kind), .id(factor.id), .integer(factor.counter)]))
        }
        if let approved = writing.addresses.first?.approvedBy {
            writes += Approvals.required(approved, of: writing.user, as: operation)
        }
        writes.append(BoundStatement(changeUser, values: writing.change.values + marked))
        for factor in writing.addresses {
            let row = SQLValue.id(factor.id)
            writes.append(
                BoundStatement(voidSent, values: [.timestamp(factor.at), row, .timestamp(factor.at)] + marked))
            writes.append(BoundStatement(dropUnsent, values: [user, row] + marked))
            writes += Factors.written(factor, as: operation)
        }
        writes.append(BoundStatement(auditChange, values: [.id(operation), .timestamp(writing.at)] + marked))
        for kind in writing.change.removed {
            writes += Factors.takenAway(kind, of: writing.user, at: writing.at, as: operation)
        }
        let taken = writing.addresses.map { AddressRows.taken($0.kind, $0.address, user: writing.user) }
        let change = Change(
            "change", operation, rows: AddressRows.signed(by: writing), writes,
            reads: [BoundStatement(userNow, user, .id(writing.website))] + taken)
        return try await run(
            Query(change: change) { rows throws(StoreFailure) in
                if rows.happened { return .done }
                guard let row = rows[1].first else { return .gone }
                let state: UserState = try row.word(0)
                guard state == .active else { return .barred(state) }
                let taken = writing.addresses.indices.filter { !rows[2 + $0].isEmpty }
                return taken.isEmpty ? .refused : .taken(taken.map { writing.addresses[$0].kind })
            })
    }

    public func sentCodes(of factor: FactorID, at now: Timestamp) async throws(StoreFailure) -> [Int64] {
        let script = Script(
            "sent", rows: [.sentCodes(of: factor)], reads: [BoundStatement(sentTo, .id(factor), .timestamp(now))])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                var counters: [Int64] = []
                for row in rows[0] { counters.append(try row.integer(0)) }
                return counters
            })
    }

    public func confirm(
        address factor: CodeFactor, of user: UserID, failures: Int, code: Int64, isVouchedFor: Bool, at now: Timestamp,
        as operation: Operation
    ) async throws(StoreFailure) -> CodeUseOutcome {
        let marked: [SQLValue] = [.id(user), .id(operation)]
        let guards = [
            BoundStatement(unmarkUnsent, values: marked + [.id(factor.id), .integer(code), .timestamp(now)]),
            AddressRows.unmarkTaken(factor.kind, factor.address, user: user, as: operation),
            BoundStatement(AddressRows.take(factor.kind), values: [.text(factor.address)] + marked),
            AddressRows.unmarkUntaken(factor.kind, factor.address, user: user, as: operation),
        ]
        let change = Change(
            "confirm", operation,
            rows: Factors.rows(confirming: factor, of: user) + [.sentCode(of: factor.id, code)],
            Factors.confirmed(
                factor, of: user, failures: failures, counter: factor.counter, hasWord: isVouchedFor, guards: guards,
                at: now,
                as: operation),
            reads: [AddressRows.taken(factor.kind, factor.address, user: user)])
        return try await run(
            Query(change: change) { rows in rows.happened ? .done : rows[1].isEmpty ? .changed : .taken })
    }

    public func send(_ sending: AddressCode, as operation: Operation) async throws(StoreFailure) -> SendOutcome {
        let code = sending.code
        let values: [SQLValue] = [
            .id(operation), .timestamp(code.at), .id(code.factor), .integer(code.counter), .timestamp(sending.since),
            .integer(Int64(Relay.addressCodes)),
        ]
        var writes = [BoundStatement(Locks.hold, .id(sending.user))]
        if let charge = sending.charge {
            writes.append(SMSBudget.hold(charge))
            writes.append(BoundStatement(auditTextCode, values: values + SMSBudget.values(charge)))
        } else {
            writes.append(BoundStatement(auditCode, values: values))
        }
        writes += OutboxRows.code(code, as: operation)
        if let charge = sending.charge { writes.append(SMSBudget.count(charge, message: code.id)) }
        let room =
            sending.charge.map { BoundStatement(hasRoom, values: SMSBudget.values($0)) } ?? BoundStatement(roomAlways)
        let change = Change(
            "send", operation, rows: [.user(sending.user).signed] + OutboxRows.rows(code), writes,
            reads: [BoundStatement(oldestSent, .id(code.factor), .timestamp(sending.since)), room])
        return try await run(
            Query(change: change) { rows throws(StoreFailure) in
                if rows.happened { return .sent }
                if let row = rows[1].first { return .limited(by: try row.timestamp(0)) }
                return rows[2].isEmpty ? .limited(by: nil) : .changed
            })
    }
}

extension UserChange {
    fileprivate var removed: [Factor] { Address.kinds.filter { addresses[$0] == .some(nil) } }

    fileprivate var values: [SQLValue] {
        [displayName, language].flatMap { [.bool($0 != nil), .text($0 ?? nil)] as [SQLValue] }
            + Address.kinds.map { .bool(removed.contains($0)) }
    }
}

/// Statements for the user's own columns `email` and `phone`.
private enum AddressRows {
    /// The rows that a change of a user writes: the user's, the approval's, and those of the
    /// address factors. The user's row comes first, because other changes of the user wait for it.
    static func signed(by writing: UserUpdate) -> [SignedRows] {
        var rows: [SignedRows] = [.user(writing.user).signed]
        if let approved = writing.addresses.first?.approvedBy { rows.append(.challenge(approved.challenge).signed) }
        for factor in writing.addresses {
            rows += Factors.rows(factor)
            rows.append(.sentCodes(of: factor.id).lenient)
        }
        for kind in writing.change.removed { rows += Factors.rows(takingAway: kind, of: writing.user) }
        return rows
    }

    static func unmarkTaken(_ kind: Factor, _ address: String?, user: UserID, as operation: Operation) -> BoundStatement
    {
        BoundStatement(kind == .mail ? unmarkMail : unmarkPhone, .id(user), .id(operation), .text(address))
    }

    static func unmarkUntaken(_ kind: Factor, _ address: String?, user: UserID, as operation: Operation)
        -> BoundStatement
    {
        BoundStatement(kind == .mail ? unmarkOtherMail : unmarkOtherPhone, .id(user), .id(operation), .text(address))
    }

    static func taken(_ kind: Factor, _ address: String?, user: UserID) -> BoundStatement {
        BoundStatement(kind == .mail ? takenMail : takenPhone, .text(address), .id(user))
    }

    static func take(_ kind: Factor) -> Statement { kind == .mail ? takeMail : takePhone }
}

/// Marks the user's row. Names can change in every state of the user; addresses are added under the
/// same conditions as other factors.
private let markUser = Statement(
    """
    UPDATE user SET operation = ? WHERE id = ? AND website_id = ? AND (? = 1 OR state = 'active')
    AND (? = 1 OR proved_at IS NULL)
    """)

/// The beginning of guards. A condition that does not hold removes the mark, and the statements
/// that follow have no effect.
private let unmark = "UPDATE user SET operation = id WHERE id = ? AND operation = ? AND"

private let another = " EXISTS (SELECT 1 FROM user o WHERE o.website_id = user.website_id AND o.id <> user.id AND o."
private let unmarkMail = Statement(unmark + another + "email = ?)")
private let unmarkPhone = Statement(unmark + another + "phone = ?)")

private let theirs = "SELECT 1 FROM user o JOIN user u ON u.website_id = o.website_id AND u.id <> o.id WHERE o."
private let takenMail = Statement(theirs + "email = ? AND u.id = ?")
private let takenPhone = Statement(theirs + "phone = ? AND u.id = ?")

/// Another relay may give the address to another user at the same time. In that case the second
/// change finds the address taken.
private let take = "UPDATE /*M! IGNORE */ user SET"
private let takeMail = Statement(take + " email = ? WHERE id = ? AND operation = ?")
private let takePhone = Statement(take + " phone = ? WHERE id = ? AND operation = ?")
private let unmarkOtherMail = Statement(unmark + " coalesce(email, '') <> ?")
private let unmarkOtherPhone = Statement(unmark + " coalesce(phone, '') <> ?")

/// Removes the mark if the waiting factor is not the one that was read.
private let unmarkOther = Statement(
    unmark + """
         EXISTS (SELECT 1 FROM factor f WHERE f.user_id = user.id AND f.kind = ? AND f.state = 'waiting'
        AND NOT (f.id = ? AND f.counter = ?))
        """)

private let unmarkUnsent = Statement(
    unmark + """
         NOT EXISTS (SELECT 1 FROM sent_code s WHERE s.factor_id = ? AND s.counter = ? AND s.challenge_id IS NULL
        AND s.expires_at > ?)
        """)

private let changeUser = Statement(
    """
    UPDATE user SET display_name = CASE ? WHEN 1 THEN ? ELSE display_name END,
    language = CASE ? WHEN 1 THEN ? ELSE language END, email = CASE ? WHEN 1 THEN NULL ELSE email END,
    phone = CASE ? WHEN 1 THEN NULL ELSE phone END WHERE id = ? AND operation = ?
    """)

private let marked = " EXISTS (SELECT 1 FROM user u WHERE u.id = ? AND u.operation = ?)"

/// Expires codes that were sent to the former address, so that they cannot confirm the new one.
private let voidSent = Statement(
    "UPDATE sent_code SET expires_at = ? WHERE factor_id = ? AND expires_at > ? AND" + marked)
private let dropUnsent = Statement("DELETE FROM outbox WHERE user_id = ? AND factor_id = ? AND" + marked)

private let auditChange = Statement(
    Audit.columns + """
         SELECT ?, ?, 'user.changed', u.website_id, u.id, NULL, NULL, NULL, NULL FROM user u
        WHERE u.id = ? AND u.operation = ?
        """ + Audit.once)

private let userNow = Statement("SELECT state FROM user WHERE id = ? AND website_id = ?")

/// Codes sent lately to confirm an address of the kind of `f`, over all of the user's factors of
/// that kind. The active factor counts, too, because such codes confirmed it.
private let lately = "o.user_id = f.user_id AND o.kind = f.kind AND s.challenge_id IS NULL AND s.sent_at > ?"

private let oldestSent = Statement(
    """
    SELECT s.sent_at FROM factor f JOIN factor o JOIN sent_code s ON s.factor_id = o.id WHERE f.id = ? AND \(lately)
    ORDER BY s.sent_at DESC LIMIT 1 OFFSET \(Relay.addressCodes - 1)
    """)
private let hasRoom = Statement("SELECT 1 /*M! FROM DUAL */ WHERE " + SMSBudget.room)
private let roomAlways = Statement("SELECT 1")

private let sentTo = Statement(
    "SELECT counter FROM sent_code WHERE factor_id = ? AND challenge_id IS NULL AND expires_at > ? ORDER BY counter")

private let auditSending =
    Audit.columns + """
         SELECT ?, ?, 'address.code', u.website_id, u.id, NULL, NULL, f.kind, NULL
        FROM factor f JOIN user u ON u.id = f.user_id
        WHERE f.id = ? AND f.counter = ? AND f.state = 'waiting' AND u.state = 'active'
        AND (SELECT count(*) FROM factor o JOIN sent_code s ON s.factor_id = o.id WHERE \(lately)) < ?
        """
private let auditCode = Statement(auditSending + Audit.once)
private let auditTextCode = Statement(auditSending + " AND " + SMSBudget.room + Audit.once)
